// Shapes in compiled code: masks and poses are read, polygons filled, runs of pixels measured and compared.
// A mask is the ascending numbers of the pixels at which it begins and ends, down the columns; those of mask i are from
// offsets[i] to offsets[i + 1]. The arithmetic is that of similarity/runs.py, masks.py and keypoints.py, step by step.

#include <algorithm>
#include <cmath>
#include <limits>

#include "reader.hpp"

namespace {

using Int = std::int64_t;
constexpr Int MAX_SIDE = 10'000'000;  // px, of an image
constexpr Int MAX_PIXELS = MAX_SIDE * MAX_SIDE;
constexpr double FARTHEST = 1e8;      // px, of a corner from the image
constexpr Int SUBPIXELS = 5;          // corners are rounded to fifths of a pixel
constexpr Int SHORTEST_POLYGON = 6;   // numbers: three points
constexpr int LONGEST_NUMBER = 7;     // characters of 5 bits
constexpr double NOT_GIVEN = std::numeric_limits<double>::quiet_NaN();

Int floor_divided(Int a, Int b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
Int ceil_divided(Int a, Int b) { return -floor_divided(-a, b); }

// Edges of one mask behind each other. Where two meet nothing lies between them, and both go.
class Edges {
  public:
    Edges(Int *place, const Int *limit) : first(place), at(place), end(limit) {}

    bool add(Int edge) {
        const bool meets = at != first && at[-1] == edge;
        if (!meets && at == end) return false;
        if (meets) --at;
        else *at++ = edge;
        return true;
    }
    Int *stop() const { return at; }

  private:
    Int *first, *at;
    const Int *end;
};

// The runs of a mask, background first: each ends where the next one begins.
class Runs {
  public:
    explicit Runs(Edges edges) : edges(edges) {}

    bool add(Int length) {
        if (length < 0 || length > MAX_PIXELS - pixels || (n != 0 && !edges.add(pixels))) return false;
        pixels += length;
        ++n;
        return true;
    }
    // Background that comes last ends at no edge.
    bool finish() { return n % 2 != 0 || n == 0 || edges.add(pixels); }
    Int *stop() const { return edges.stop(); }
    Int size() const { return pixels; }

  private:
    Edges edges;
    Int pixels = 0, n = 0;
};

// The string of a mask, as JSON has it: characters of 5 bits and one that says whether the number goes on, numbers with
// a sign, from the fourth on the difference to the one two before.
bool read_string(Reader &reader, Runs &runs) {
    Name text;
    if (!reader.read_text(text)) return false;
    Int before[2] = {0, 0};  // of even and of odd runs
    std::size_t at = 0;
    for (Int n = 0; at < text.size(); ++n) {
        Int value = 0;
        unsigned bits = 32;
        for (int digit = 0; (bits & 32) != 0; ++digit) {
            if (at == text.size() || digit == LONGEST_NUMBER) return false;
            char c = text[at++];
            if (c == '\\' && (at == text.size() || (c = text[at++]) != '\\')) return false;
            if (c < '0' || c > 'o') return false;
            bits = static_cast<unsigned>(c - '0');
            value |= static_cast<Int>(bits & 31) << (5 * digit);
            if ((bits & 48) == 16) value -= Int{1} << (5 * (digit + 1));
        }
        if (n > 2) value += before[n % 2];
        before[n % 2] = value;
        if (!runs.add(value)) return false;
    }
    return true;
}

bool read_runs(Reader &reader, Int *size, Edges edges, Int *&stop) {
    constexpr Name FIELDS[] = {"size", "counts"};
    unsigned seen = 0;
    Runs runs(edges);
    const bool is_read = reader.read_object(FIELDS, seen, [&](std::size_t field) {
        if (field == 1) {
            if (reader.next() == '"') return read_string(reader, runs);
            return reader.read_list([&] {
                Int length = 0;
                return reader.read_integer(length) && runs.add(length);
            });
        }
        Int n = 0;
        const auto read_side = [&] {
            return n < 2 && reader.read_integer(size[n]) && size[n] >= 0 && size[n++] <= MAX_SIDE;
        };
        return reader.read_list(read_side) && n == 2;
    });
    if (!is_read || seen != 3 || !runs.finish() || runs.size() != size[0] * size[1]) return false;
    stop = runs.stop();
    return true;
}

struct Point {
    Int x, y;
};

// Towards 0, as C rounds: corners left of or above the image are not moved into it.
Point rounded_corner(const double *corner) {
    return {static_cast<Int>(corner[0] * SUBPIXELS + 0.5), static_cast<Int>(corner[1] * SUBPIXELS + 0.5)};
}

// A side of a polygon and the columns of pixels whose centre it passes, between 5x + 2 and 5x + 3 fifths.
struct Side {
    Point a, b;
    Int first, last;

    Side(Point a, Point b, Int width)
        : a(a), b(b), first(std::max(ceil_divided(std::min(a.x, b.x) - 2, SUBPIXELS), Int{0})),
          last(std::min(floor_divided(std::max(a.x, b.x) - 3, SUBPIXELS), width - 1)) {}

    // The lower y of the two points at `column` and at the next one, in fifths. Sides are walked in unit steps along
    // their longer axis, always upwards on it, and rounded on the other.
    Int crossing(Int column) const {
        const bool along_x = std::abs(b.x - a.x) >= std::abs(b.y - a.y);
        const bool flipped = along_x ? a.x > b.x : a.y > b.y;
        const Point low = flipped ? b : a, high = flipped ? a : b;
        const Int n_steps = along_x ? high.x - low.x : high.y - low.y;
        const Int rise = along_x ? high.y - low.y : high.x - low.x;
        const double slope = static_cast<double>(rise) / static_cast<double>(n_steps);
        const auto other = static_cast<double>(along_x ? low.y : low.x);
        const auto rounded = [&](Int step) {
            const double way = slope * static_cast<double>(step);
            return static_cast<Int>(other + way + 0.5);
        };
        if (along_x) return std::min(rounded(column - low.x), rounded(column - low.x + 1));
        // Along y, the step at which x passes to the next column is that of exact arithmetic, or one more or less.
        const Int shift = std::abs(high.x - low.x);
        const bool rising = slope > 0;
        const Int exact = rising ? ceil_divided((2 * (column - low.x) + 1) * n_steps, 2 * shift)
                                 : floor_divided((2 * (low.x - column) - 1) * n_steps, 2 * shift) + 1;
        const auto passed = [&](Int step) { return rising ? rounded(step) > column : rounded(step) <= column; };
        return low.y + exact - (passed(exact - 1) ? 1 : 0) + (passed(exact) ? 0 : 1) - 1;
    }
};

template <typename Visit>
void visit_sides(const double *corners, Int n, Int width, Visit visit) {
    if (n == 0) return;
    Point a = rounded_corner(corners), start = a;
    for (Int i = 1; i <= n; ++i) {
        const Point b = i == n ? start : rounded_corner(corners + 2 * i);
        visit(Side(a, b, width));
        a = b;
    }
}

// The pixels in which the parts have any: `edges` holds those of one part behind those of the other.
Int *united(Int *edges, Int *stop) {
    for (Int *edge = edges; edge != stop; ++edge) *edge = 2 * *edge + (edge - edges) % 2;
    std::sort(edges, stop);
    Int depth = 0, *kept = edges;
    for (const Int *edge = edges; edge != stop;) {
        const Int place = *edge >> 1, before = depth;
        for (; edge != stop && *edge >> 1 == place; ++edge) depth += (*edge & 1) != 0 ? -1 : 1;
        if ((before > 0) != (depth > 0)) *kept++ = place;
    }
    return kept;
}

}  // namespace

// Find the shape of each annotation of ground truth, or of each record of a results list: where the value of
// `segmentation` begins and stops, or of `keypoints` where `is_pose`. A list is given in pieces, with `position` as
// for `jaccard_scan_results`, ground truth as a whole. Of results, the other columns are read as well;
// their boxes may be missing, and are NaN then; of ground truth `number` alone, the keypoints that are labelled, -1 if
// not given. `bounds` are the most numbers of corners, polygons, and edges of runs that there can be. Returns how many
// records there are, or NOT_PLAIN.
EXPORTED Int jaccard_scan_shapes(Text text, std::size_t size, std::size_t *position, Int is_first, Int is_last,
                                 Int is_pose, Int is_truth, Int capacity, Int *bounds, Int *at, Int *stop, Int *number,
                                 Int *image, Int *category, double *box, double *score) {
    constexpr Name SECTIONS[] = {"annotations"};
    constexpr Name FIELDS[] = {"segmentation", "keypoints", "num_keypoints", "image_id",     "category_id",
                               "bbox",         "score",     "file_name",     "category_name"};
    const unsigned needed = (is_pose != 0 ? 2u : 1u) | (is_truth != 0 ? 0u : 8u + 16u + 64u);
    Reader reader(text, size, 0);
    Int n = 0;
    unsigned seen = 0;
    const auto is_low = [](char c) { return c < 'P'; };
    // Passed over by its brackets alone: whether it ends there is seen when it is read.
    const auto find_shape = [&] {
        at[n] = static_cast<Int>(reader.position());
        const char opening = reader.next();
        if (opening == '{' || is_pose != 0) {
            if (!reader.skip_past(opening == '{' ? '}' : ']')) return false;
            // The last character of each number is below 'P', of a string, or what follows it.
            if (opening == '{') bounds[2] += std::count_if(text + at[n], text + reader.position(), is_low);
        } else {
            Int depth = 0;
            do {
                const Text c = text + reader.position();
                if (!reader.skip_one()) return false;
                bounds[0] += *c == ',';
                bounds[1] += *c == '[';
                depth += (*c == '[') - (*c == ']');
            } while (depth != 0);
            ++bounds[0];
        }
        stop[n] = static_cast<Int>(reader.position());
        return true;
    };
    const auto read_record = [&] {
        if (n == capacity) return false;
        if (is_truth != 0) number[n] = -1;
        else std::fill_n(box + 4 * n, 4, NOT_GIVEN);
        const bool is_read = reader.read_object(FIELDS, seen, [&](std::size_t field) {
            if (field == (is_pose != 0 ? 1 : 0)) return find_shape();
            if (field == 2 && is_truth != 0) return reader.read_integer(number[n]) && number[n] >= 0;
            if (field < 3 || is_truth != 0) return reader.skip_value(MAX_DEPTH);
            switch (field) {
                case 3: return reader.read_integer(image[n]);
                case 4: return reader.read_integer(category[n]);
                case 5: return reader.read_box(box + 4 * n);
                case 6: return reader.read_number(score[n]);
                default: return false;  // names of images and of classes
            }
        });
        ++n;
        return is_read && (seen & needed) == needed;
    };
    reader.skip_blanks();
    if (is_truth != 0) {
        unsigned sections = 0;
        const auto read_records = [&](std::size_t) { return reader.read_list(read_record); };
        const bool is_read = reader.read_object(SECTIONS, sections, read_records);
        reader.skip_blanks();
        return is_read && reader.at_end() && sections == 1 ? n : NOT_PLAIN;
    }
    if (is_first != 0 && !reader.take('[')) return NOT_PLAIN;
    for (Int n_whole = 0;; n_whole = n) {
        reader.skip_blanks();
        *position = reader.position();
        const bool is_read = read_record();
        reader.skip_blanks();
        if (is_read && reader.take(',')) continue;
        if (is_last == 0) return n_whole;  // the next piece begins with what this one does not hold as a whole
        const bool is_done = is_read && reader.take(']');
        reader.skip_blanks();
        *position = reader.position();
        return is_done && reader.at_end() ? n : NOT_PLAIN;
    }
}

// Read the masks that lie from `at` to `stop`: polygons of three points and more, or runs that make up an image of the
// size that they come with. `is_short` marks masks with other polygons, which are left away. The first of `parts` and
// `offsets` say how many polygons and edges there are already, behind which others come. Returns 0, or NOT_PLAIN.
EXPORTED Int jaccard_read_outlines(Text text, std::size_t size, Int n, const Int *at, const Int *stop,
                                   const Int *bounds, double *corners, Int *rings, Int *parts, Int *edges, Int *offsets,
                                   Int *sizes, std::uint8_t *has_polygons, std::uint8_t *is_short) {
    Int n_rings = parts[0], n_corners = rings[n_rings], *last = edges + offsets[0];
    for (Int i = 0; i < n; ++i) {
        Reader reader(text, size, static_cast<std::size_t>(at[i]));
        sizes[2 * i] = sizes[2 * i + 1] = is_short[i] = 0;
        has_polygons[i] = reader.next() == '[' ? 1 : 0;
        Int n_listed = 0;
        const auto read_polygon = [&] {
            Int numbers = 0;
            double *const ring = corners + 2 * n_corners;
            const auto read_corner = [&] {
                if (2 * n_corners + numbers == bounds[0] || !reader.read_number(ring[numbers])) return false;
                return std::fabs(ring[numbers++]) <= FARTHEST;
            };
            if (!reader.read_list(read_corner) || numbers % 2 != 0) return false;
            if (numbers < SHORTEST_POLYGON) is_short[i] = 1;
            else if (n_rings == bounds[1]) return false;
            else rings[++n_rings] = n_corners += numbers / 2;
            return ++n_listed > 1 || is_short[i] == 0;  // the first one decides what they are
        };
        if (has_polygons[i] != 0 ? !reader.read_list(read_polygon) || n_listed == 0
                                 : !read_runs(reader, sizes + 2 * i, Edges(last, edges + bounds[2]), last))
            return NOT_PLAIN;
        if (static_cast<Int>(reader.position()) != stop[i]) return NOT_PLAIN;
        parts[i + 1] = n_rings;
        offsets[i + 1] = last - edges;
    }
    return 0;
}

// Read the lists of `length` numbers from `at` to `stop`. Returns 0, or NOT_PLAIN.
EXPORTED Int jaccard_read_poses(Text text, std::size_t size, Int n, const Int *at, const Int *stop, Int length,
                                double *points) {
    for (Int i = 0; i < n; ++i) {
        Reader reader(text, size, static_cast<std::size_t>(at[i]));
        Int numbers = 0;
        const auto read_one = [&] { return numbers < length && reader.read_number(points[i * length + numbers++]); };
        if (!reader.read_list(read_one) || numbers != length) return NOT_PLAIN;
        if (static_cast<Int>(reader.position()) != stop[i]) return NOT_PLAIN;
    }
    return 0;
}

// Fill polygons in images of height and width `sizes`: ring r has the corners from rings[r], mask i is the union of
// those from masks[i]; masks without any have the edges that are given. Returns how many edges they have; without
// `edges`, how many there is to be room for.
EXPORTED Int jaccard_fill_polygons(Int n, const double *corners, const Int *rings, const Int *masks, const Int *sizes,
                                   const Int *given, const Int *given_offsets, Int *edges, Int *offsets) {
    Int room = given_offsets[n], *stop = edges;
    if (edges != nullptr) offsets[0] = 0;
    for (Int i = 0; i < n; ++i) {
        const Int height = sizes[2 * i], width = sizes[2 * i + 1];
        Int *const begin = stop;
        if (edges != nullptr) stop = std::copy(given + given_offsets[i], given + given_offsets[i + 1], stop);
        for (Int r = masks[i]; r < masks[i + 1]; ++r) {
            Int *const first = stop;
            visit_sides(corners + 2 * rings[r], rings[r + 1] - rings[r], width, [&](const Side &side) {
                if (edges == nullptr) {
                    room += std::max(side.last - side.first + 1, Int{0});
                    return;
                }
                for (Int column = side.first; column <= side.last; ++column) {
                    // Of the two points around the centre the upper one decides; rows beyond the image are cut off.
                    const auto row = static_cast<double>(side.crossing(SUBPIXELS * column + 2));
                    const double y = (row + 0.5) / SUBPIXELS - 0.5;
                    const double cut = std::ceil(std::min(std::max(y, 0.0), static_cast<double>(height)));
                    *stop++ = column * height + static_cast<Int>(cut);
                }
            });
            if (edges == nullptr) continue;
            std::sort(first, stop);
            Edges kept(first, stop);
            for (const Int *edge = first; edge != stop; ++edge) kept.add(*edge);
            stop = kept.stop();
        }
        if (edges == nullptr) continue;
        if (masks[i + 1] - masks[i] > 1) stop = united(begin, stop);
        offsets[i + 1] = stop - edges;
    }
    return edges == nullptr ? room : stop - edges;
}

// The pixels of each mask, and unless `box` is null its left, top, width and height, in images of height and width
// `sizes`.
EXPORTED void jaccard_measure_masks(Int n, const Int *edges, const Int *offsets, const Int *sizes, Int *area,
                                    double *box) {
    for (Int i = 0; i < n; ++i) {
        const Int *const first = edges + offsets[i], *const stop = edges + offsets[i + 1];
        area[i] = 0;
        for (const Int *edge = first; edge != stop; edge += 2) area[i] += edge[1] - edge[0];
        if (box == nullptr) continue;
        std::fill_n(box + 4 * i, 4, 0.0);
        if (first == stop) continue;
        const Int height = sizes[2 * i], left = first[0] / height, right = (stop[-1] - 1) / height;
        Int top = height, bottom = 0, column = left * height;
        for (const Int *edge = first; edge != stop; edge += 2) {
            if (edge[0] - column >= height) column += height;  // nearly always the next column
            if (edge[0] - column >= height) column = edge[0] / height * height;
            const bool wraps = edge[1] > column + height;  // it goes on at the top of the next column
            top = std::min(top, wraps ? 0 : edge[0] - column);
            bottom = std::max(bottom, wraps ? height - 1 : edge[1] - 1 - column);
        }
        const Int found[] = {left, top, right - left + 1, bottom - top + 1};
        std::copy(found, found + 4, box + 4 * i);
    }
}

// Write the strings of masks in images of so many `pixels`, as `read_string` reads them, one behind the other: that of
// mask i ends at stops[i]. For each edge there is room for LONGEST_NUMBER characters, and for one number more a mask.
EXPORTED void jaccard_encode_masks(Int n, const Int *edges, const Int *offsets, const Int *pixels, char *text,
                                   Int *stops) {
    char *at = text;
    for (Int i = 0; i < n; ++i) {
        Int last = 0, before[2] = {0, 0}, count = 0;
        const auto add = [&](Int end) {
            const Int length = end - last;
            Int value = count > 2 ? length - before[count % 2] : length;
            before[count++ % 2] = length;
            last = end;
            for (bool goes_on = true; goes_on;) {
                const Int bits = value & 31;
                value = (value - bits) / 32;
                goes_on = (bits & 16) != 0 ? value != -1 : value != 0;
                *at++ = static_cast<char>('0' + bits + (goes_on ? 32 : 0));
            }
        };
        for (Int edge = offsets[i]; edge != offsets[i + 1]; ++edge) add(edges[edge]);
        if (last < pixels[i] || count == 0) add(pixels[i]);
        stops[i] = at - text;
    }
}

// Count the pixels that the masks i of one column and j of another have in common, pair by pair.
EXPORTED void jaccard_intersect(Int n, const Int *i, const Int *j, const Int *edges, const Int *offsets,
                                const Int *other_edges, const Int *other_offsets, Int *shared) {
    for (Int pair = 0; pair < n; ++pair) {
        const Int *a = edges + offsets[i[pair]], *const a_stop = edges + offsets[i[pair] + 1];
        const Int *b = other_edges + other_offsets[j[pair]], *const b_stop = other_edges + other_offsets[j[pair] + 1];
        Int count = 0;
        if (a != a_stop && b != b_stop) {
            // Most begin in different columns; runs come in pairs of edges.
            a += (std::upper_bound(a, a_stop, *b) - a) / 2 * 2;
            if (a != a_stop) b += (std::upper_bound(b, b_stop, *a) - b) / 2 * 2;
        }
        while (a != a_stop && b != b_stop) {
            const Int from = std::max(a[0], b[0]), to = std::min(a[1], b[1]);
            count += std::max(to - from, Int{0});
            // Both move on where they end together; no branch that could be guessed wrong.
            const bool a_ends = a[1] == to, b_ends = b[1] == to;
            a += a_ends ? 2 : 0;
            b += b_ends ? 2 : 0;
        }
        shared[pair] = count;
    }
}

// What is quicker in compiled code, behind a plain C interface: no part of Python is used here.
//
// Whatever is out of the ordinary is refused, and read by the Python readers, which find out what it is. So nothing
// here decides anything: what is accepted has one meaning, and the same values come out to the last bit.

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include "reader.hpp"

namespace {

enum Field : unsigned { SCORE = 1, BOX = 2, IMAGE = 4, CATEGORY = 8, ALL = 15 };

constexpr double FAR = 3;             // errors of points from here on, or a rounding below, add
constexpr double LIKE_IF_FAR = 0.05;  // at most to how like poses are: exp(-3) and a little more

struct Scored {
    std::uint64_t key;  // ascends as scores descend; NaN has the highest, and both zeros have one
    std::int64_t row;
};

std::uint64_t descending_key(double score) {
    if (score != score) return ~std::uint64_t{0};
    const double turned = 0.0 - score;
    std::uint64_t bits = 0;
    std::memcpy(&bits, &turned, sizeof bits);
    return bits >> 63 != 0 ? ~bits : bits | std::uint64_t{1} << 63;
}

constexpr int RADIX_BITS = 11;  // of a key that are sorted by at a time: three times leave 31 bits, which few keys need
constexpr std::uint64_t N_BUCKETS = std::uint64_t{1} << RADIX_BITS;
constexpr std::ptrdiff_t FEW = 512;  // are sorted sooner by comparing

// Sort by key, equal keys in the order in which they stand; `spare` has as much room as there is between the two.
void sort_stably(Scored *first, Scored *last, Scored *spare) {
    const auto is_before = [](const Scored &a, const Scored &b) { return a.key < b.key; };
    const auto n = last - first;
    if (n < FEW) return std::stable_sort(first, last, is_before);
    Scored *from = first, *to = spare;
    for (int shift = 64 - 3 * RADIX_BITS; shift < 64; shift += RADIX_BITS, std::swap(from, to)) {
        std::ptrdiff_t next[N_BUCKETS] = {}, total = 0;
        for (std::ptrdiff_t i = 0; i < n; ++i) ++next[from[i].key >> shift & (N_BUCKETS - 1)];
        for (std::ptrdiff_t &at : next) at = std::exchange(total, total + at);
        for (std::ptrdiff_t i = 0; i < n; ++i) to[next[from[i].key >> shift & (N_BUCKETS - 1)]++] = from[i];
    }
    std::copy(from, from + n, first);
    const auto prefix = [](const Scored &one) { return one.key >> (64 - 3 * RADIX_BITS); };
    for (Scored *run = first; run != last;) {  // of keys that differ in the other bits alone
        Scored *stop = run + 1;
        while (stop != last && prefix(*stop) == prefix(*run)) ++stop;
        if (!std::is_sorted(run, stop, is_before)) std::stable_sort(run, stop, is_before);
        run = stop;
    }
}

}  // namespace

// Of the functions below: a library that was built from an older text is not used.
EXPORTED std::int64_t jaccard_core_version() { return 21; }

// Read up to `capacity` records of a COCO results list whose records have four numeric fields, each once, and no
// others. The text is a piece of the list, the first one or the last one or both. `position` is where to begin, then
// where the next piece begins: with a record, or at `size` where the list has ended.
// Returns how many records there are, or NOT_PLAIN; none where the piece ends within the first or that is not plain.
EXPORTED std::int64_t jaccard_scan_results(Text text, std::size_t size, std::size_t *position, std::int64_t is_first,
                                           std::int64_t is_last, std::int64_t capacity, std::int64_t *image,
                                           std::int64_t *category, double *box, double *score) {
    Reader reader(text, size, *position);
    if (is_first) {
        if (!reader.take('[')) return NOT_PLAIN;
    }
    reader.skip_blanks();
    const auto read_record = [&](std::int64_t n) {
        unsigned seen = 0;
        if (!reader.take('{')) return false;
        do {
            reader.skip_blanks();
            unsigned field = 0;
            if (reader.take_key("\"score\"")) field = SCORE;
            else if (reader.take_key("\"bbox\"")) field = BOX;
            else if (reader.take_key("\"image_id\"")) field = IMAGE;
            else if (reader.take_key("\"category_id\"")) field = CATEGORY;
            if (field == 0 || (seen & field) != 0 || !reader.take_mark(':')) return false;
            seen |= field;
            const bool is_read = field == SCORE   ? reader.read_number(score[n])
                                 : field == BOX   ? reader.read_box(box + 4 * n)
                                 : field == IMAGE ? reader.read_integer(image[n])
                                                  : reader.read_integer(category[n]);
            if (!is_read) return false;
            reader.skip_blanks();
        } while (reader.take(','));
        if (seen != ALL || !reader.take('}')) return false;
        reader.skip_blanks();
        return true;
    };
    std::int64_t n = 0;
    for (*position = reader.position(); n < capacity; *position = reader.position()) {
        if (!read_record(n)) return is_last ? NOT_PLAIN : n;
        if (reader.take(',')) {
            reader.skip_blanks();
            if (is_last && reader.at_end()) return NOT_PLAIN;  // another record must follow
        } else {
            if (!is_last) return n;  // what follows is in the next piece
            if (!reader.take(']')) return NOT_PLAIN;
            reader.skip_blanks();
            if (!reader.at_end()) return NOT_PLAIN;
            *position = size;
            return n + 1;
        }
        ++n;
    }
    return n;
}

// Read the ground truth of a COCO object: up to `capacity` annotations, and the texts of images and of categories, one
// behind the other with a comma behind each, of which only the keys are looked at. The text is a piece of the object,
// with `position` as for results. `state` is zeros at first, then what the last piece left: where the texts of images
// and of categories end, how many annotations there are and have an id (all of them or none), which sections there were,
// and where reading stands. Areas are NaN and flags -1 where they are not given.
// Returns how many annotations there are by now, or NOT_PLAIN.
EXPORTED std::int64_t jaccard_scan_truth(Text text, std::size_t size, std::size_t *position, std::int64_t is_last,
                                         std::int64_t capacity, std::int64_t *state, char *listed, std::int64_t *image,
                                         std::int64_t *category, std::int64_t *id, double *box, double *area,
                                         std::int8_t *crowd, std::int8_t *ignore) {
    enum Place : std::int64_t { START, FIELD, DONE, SECTION };  // the other sections stand behind it
    enum Section : std::int64_t { ANNOTATIONS = 2, N_SECTIONS };
    constexpr Name SECTIONS[] = {"images", "categories", "annotations"};
    constexpr Name LISTED[] = {"id", "file_name", "width", "height", "name"};  // of images and categories
    constexpr Name FIELDS[] = {"image_id", "category_id", "bbox",        "id",        "area",     "iscrowd",
                               "ignore",   "score",       "is_group_of", "isgroupof", "IsGroupOf",
                               "vis_ratio"};
    constexpr unsigned NEEDED = 7, WITH_ID = 8, ALL_SECTIONS = 7;
    std::int64_t &n = state[2], &n_ids = state[3], &sections = state[4], &place = state[5];
    Reader reader(text, size, 0);
    unsigned seen = 0;
    const auto read_annotation = [&] {
        if (n == capacity) return false;
        area[n] = std::numeric_limits<double>::quiet_NaN();
        crowd[n] = ignore[n] = -1;
        const bool is_read = reader.read_object(FIELDS, seen, [&](std::size_t field) {
            switch (field) {
                case 0: return reader.read_integer(image[n]);
                case 1: return reader.read_integer(category[n]);
                case 2: return reader.read_box(box + 4 * n);
                case 3: return reader.read_integer(id[n]);
                case 4: return reader.read_number(area[n]);
                case 5: return reader.read_flag(crowd[n]);
                case 6: return reader.read_flag(ignore[n]);
                default: return false;  // a score: are these predictions? The others: few files have them
            }
        });
        return is_read && (seen & NEEDED) == NEEDED;
    };
    const auto read_listed = [&] {
        return reader.read_object(LISTED, seen, [&](std::size_t) { return reader.skip_value(MAX_DEPTH); });
    };
    const auto end_field = [&] {
        reader.skip_blanks();
        place = reader.take(',') ? FIELD : DONE;
        return place == FIELD || reader.take('}');
    };
    const auto read_field = [&] {
        Name key;
        if (reader.next() != '"' || !reader.read_text(key)) return false;
        // Written with escapes, a key may be one of those that are looked for.
        if (key.find('\\') != Name::npos || !reader.take_mark(':')) return false;
        std::int64_t section = 0;
        while (section < N_SECTIONS && SECTIONS[section] != key) ++section;
        if (section == N_SECTIONS) return reader.skip_value(MAX_DEPTH) && end_field();
        if ((sections >> section & 1) != 0 || !reader.take('[')) return false;
        reader.skip_blanks();
        place = SECTION + section;
        if (reader.take(']') ? !end_field() : reader.at_end()) return false;
        sections |= std::int64_t{1} << section;
        return true;
    };
    const auto read_item = [&](std::int64_t section) {
        const std::size_t first = reader.position();
        if (!(section == ANNOTATIONS ? read_annotation() : read_listed())) return false;
        const std::size_t length = reader.position() - first;
        reader.skip_blanks();
        if (!reader.take(',') && !(reader.take(']') && end_field())) return false;
        if (section == ANNOTATIONS) {
            n_ids += (seen & WITH_ID) != 0;
            ++n;
        } else {
            char *const to = listed + std::max(state[0], state[1]);
            std::memcpy(to, text + first, length);
            to[length] = ',';
            state[section] = to + length + 1 - listed;
        }
        return true;
    };
    for (*position = 0; place != DONE; *position = reader.position()) {
        const std::int64_t before = place;
        reader.skip_blanks();
        if (place == START) place = FIELD;
        if (before == START ? reader.take('{') : before == FIELD ? read_field() : read_item(before - SECTION)) continue;
        place = before;  // what the piece does not hold as a whole is read with the next one
        return is_last ? NOT_PLAIN : n;
    }
    reader.skip_blanks();
    *position = reader.position();
    const bool is_whole = sections == ALL_SECTIONS && (n_ids == 0 || n_ids == n);
    return reader.at_end() && is_whole ? n : NOT_PLAIN;
}

// Rank n detections: by class, then score, the highest first, then in the order of `turn`; NaN comes last in its class.
// Those of a rank within their image and class from `cap` on are left away. Returns how many remain, or NOT_PLAIN.
EXPORTED std::int64_t jaccard_rank(std::int64_t n, std::int64_t n_images, std::int64_t n_labels, std::int64_t cap,
                                   const double *score, const std::int64_t *label, const std::int32_t *image,
                                   const std::int64_t *turn, std::int64_t *order, std::int64_t *key,
                                   std::int32_t *rank) {
    const auto scored = make_room<Scored>(n);
    const auto next = make_room<std::int64_t>(n_labels + 1);
    const auto seen = make_room<std::int32_t>(n_images);
    if (!scored || !next || !seen) return NOT_PLAIN;
    for (std::int64_t i = 0; i < n; ++i) ++next[label[i] + 1];
    const auto spare = make_room<Scored>(*std::max_element(next.get(), next.get() + n_labels + 1));
    if (!spare) return NOT_PLAIN;
    for (std::int64_t k = 0; k < n_labels; ++k) next[k + 1] += next[k];
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t row = turn[i];
        scored[next[label[row]]++] = {descending_key(score[row]), row};
    }
    std::int64_t kept = 0, start = 0;
    for (std::int64_t k = 0; k < n_labels; start = next[k++]) {  // each begins where the last one ends by now
        Scored *const first = scored.get() + start, *const last = scored.get() + next[k];
        sort_stably(first, last, spare.get());
        for (const Scored *at = first; at != last; ++at) {
            const std::int32_t place = seen[image[at->row]]++;
            if (place >= cap) continue;
            order[kept] = at->row;
            key[kept] = k * n_images + image[at->row];
            rank[kept++] = place;
        }
        for (const Scored *at = first; at != last; ++at) seen[image[at->row]] = 0;
    }
    return kept;
}

// Pair n boxes, in the order of `rows`, with those of their blocks [start, stop) in `others` whose overlap is at least
// `threshold`: IoU, or the share of the box itself where the other is a crowd. The arithmetic is that of
// similarity/boxes.py, step by step. `row` is where to begin, then where the next call goes on: there is room for
// `capacity` pairs, and for the largest block. Returns how many pairs there are.
EXPORTED std::int64_t jaccard_pair_boxes(std::int64_t n, std::int64_t *row, std::int64_t capacity, double threshold,
                                         double offset, const double *boxes, const std::int64_t *rows,
                                         const double *others, const std::int64_t *start, const std::int64_t *stop,
                                         const std::uint8_t *crowd, std::int64_t *box, std::int64_t *other,
                                         double *overlap) {
    std::int64_t found = 0, i = *row;
    for (; i < n && stop[i] - start[i] <= capacity - found; ++i) {
        const double *const a = boxes + 4 * rows[i];
        const double width = a[2] + offset, height = a[3] + offset;
        const double right = width + a[0], bottom = height + a[1], area = width * height;
        for (std::int64_t j = start[i]; j < stop[i]; ++j) {
            const double *const b = others + 4 * j;
            const double its_width = b[2] + offset, its_height = b[3] + offset;
            const double across = std::min(right, its_width + b[0]) - std::max(a[0], b[0]);
            const double down = std::min(bottom, its_height + b[1]) - std::max(a[1], b[1]);
            const double common = across * down;
            const double whole = crowd[j] != 0 ? area : (area + its_width * its_height) - common;
            const double ratio = common / whole;
            // All at once: whether boxes overlap at all cannot be foretold, and a wrong guess takes longer than a division.
            if (!((ratio >= threshold) & (across > 0) & (down > 0))) continue;
            box[found] = i;
            other[found] = j;
            overlap[found++] = ratio;
        }
    }
    *row = i;
    return found;
}

// Give each of `n_objects`, at each threshold, to the first pair of `rows` (n,) that reaches it, those that are reusable
// to all of them. `wins` has a row of n pairs for each threshold. Returns how many objects there are, or NOT_PLAIN.
EXPORTED std::int64_t jaccard_first_come(std::int64_t n_thresholds, std::int64_t n, std::int64_t n_objects,
                                         const std::int64_t *rows, const std::int64_t *object, const double *overlap,
                                         const double *thresholds, const std::uint8_t *reusable, std::uint8_t *wins) {
    const auto taken = make_room<std::uint8_t>(n_thresholds * n_objects);
    if (!taken) return NOT_PLAIN;
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t j = object[rows[i]];
        for (std::int64_t t = 0; t < n_thresholds; ++t) {
            std::uint8_t &is_taken = taken[n_thresholds * j + t];
            const bool wins_it = overlap[rows[i]] >= thresholds[t] && is_taken <= reusable[j];
            wins[n * t + i] = wins_it;
            is_taken |= wins_it;
        }
    }
    return n_objects;
}

// Find the true positives of each threshold, in the order of the ranking: their detections, how many detections of
// their class count up to and including each, and their number by threshold and class. Of n detections those of a rank
// from `cap` on are left away. `hit` and `counts` have a row of c candidates for each threshold; all other detections
// count as `in_range` says. With bounds of ties, the hits of each tie stand in front of all else in it, or behind.
// There is room for one hit more than there are. Returns how many there are, or NOT_PLAIN.
EXPORTED std::int64_t jaccard_find_hits(std::int64_t n_thresholds, std::int64_t n, std::int64_t c, std::int64_t
                                        n_labels, std::int64_t cap, std::int64_t hits_first, const std::int32_t *label,
                                        const std::int32_t *rank, const std::uint8_t *in_range, const std::int64_t
                                        *candidate, const std::uint8_t *hit, const std::uint8_t *counts, const
                                        std::int32_t *ties, std::int32_t *detection, std::int32_t *before, std::int64_t
                                        *count) {
    // Of a candidate: what counts in its class in front of its tie, and up to the end of it, if nothing matches.
    struct Place {
        std::int64_t candidate;
        std::int32_t label, tie, begin, end;
        bool counts;
    };
    const auto total = make_room<std::int32_t>(n + 1);
    const auto outside = make_room<std::int32_t>(n_labels);
    const auto place = make_room<Place>(c);
    if (n > std::numeric_limits<std::int32_t>::max() || !total || !outside || !place) return NOT_PLAIN;
    for (std::int64_t i = 0; i < n; ++i) {
        if (i == 0 || label[i] != label[i - 1]) outside[label[i]] = total[i];
        total[i + 1] = total[i] + (in_range[i] != 0 && rank[i] < cap);
    }
    std::int64_t m = 0;
    std::int32_t tie = 0;
    for (std::int64_t j = 0; j < c; ++j) {
        const auto row = static_cast<std::int32_t>(candidate[j]);
        if (rank[row] >= cap) continue;
        while (ties != nullptr && ties[tie + 1] <= row) ++tie;
        const std::int32_t begin = ties == nullptr ? row : ties[tie], end = ties == nullptr ? row + 1 : ties[tie + 1];
        const std::int32_t k = label[row];
        place[m++] = {j, k, begin, total[begin] - outside[k], total[end] - outside[k], in_range[row] != 0};
    }
    std::int64_t found = 0;
    for (std::int64_t t = 0; t < n_thresholds; ++t, hit += c, counts += c, count += n_labels) {
        for (std::int64_t i = 0; i < m;) {
            const std::int32_t k = place[i].label;
            const std::int64_t first_of_class = found;
            std::int32_t change = 0;  // by what candidates of the class match
            while (ties == nullptr && i < m && place[i].label == k) {
                // Each is written, and the next one over it unless it is a hit: whether it is cannot be foretold.
                const Place &at = place[i++];
                detection[found] = static_cast<std::int32_t>(candidate[at.candidate]);
                before[found] = at.begin + change + 1;
                found += hit[at.candidate];
                change += counts[at.candidate] - at.counts;
            }
            while (i < m && place[i].label == k) {
                const Place at = place[i];
                const std::int64_t first = found;
                std::int32_t last = at.begin + change;  // where the next hit stands, if those of the tie come first
                for (; i < m && place[i].tie == at.tie; ++i) {
                    const std::int64_t j = place[i].candidate;
                    change += counts[j] - place[i].counts;
                    if (hit[j] == 0) continue;
                    detection[found] = static_cast<std::int32_t>(candidate[j]);
                    before[found++] = ++last;
                }
                if (hits_first) continue;
                last = at.end + change;
                for (std::int64_t h = found; h-- != first;) before[h] = last--;
            }
            count[k] += found - first_of_class;
        }
    }
    return found;
}

// Find the highest precision at or beyond each recall value, of cells [start, stop) of hits, `n_labels` for each
// threshold. `total` is the weight of the hits in front of each one, and of all, `before` of what counts up to each, both
// of 32 bits if they are narrow, else of 64. `needed` has the weight of hits at which a class reaches each of the
// `n_recalls` values, at least 1. The arithmetic is that of metrics/curves.py.
EXPORTED void jaccard_interpolate(std::int64_t n_thresholds, std::int64_t n_recalls, std::int64_t n_labels,
                                  double epsilon, std::int64_t is_narrow, const void *total, const void *before,
                                  const std::int64_t *start, const std::int64_t *stop, const std::int64_t *needed,
                                  double *precision) {
    const auto measure = [&](const auto *hits, const auto *counting) {
        for (std::int64_t t = 0; t < n_thresholds; ++t, precision += n_recalls * n_labels) {
            for (std::int64_t k = 0; k < n_labels; ++k) {
                const std::int64_t first = *start++, outside = hits[first];
                std::int64_t i = *stop++;
                double highest = 0;
                for (std::int64_t r = n_recalls; r-- != 0;) {
                    while (i != first && hits[i] - outside >= needed[k * n_recalls + r]) {
                        --i;
                        const auto found = static_cast<double>(hits[i + 1] - outside);
                        const auto counted = static_cast<double>(std::max<std::int64_t>(counting[i], 1));
                        highest = std::max(highest, found / (counted + epsilon));
                    }
                    precision[r * n_labels + k] = highest;
                }
            }
        }
    };
    if (is_narrow != 0) {
        measure(static_cast<const std::int32_t *>(total), static_cast<const std::int32_t *>(before));
    } else {
        measure(static_cast<const std::int64_t *>(total), static_cast<const std::int64_t *>(before));
    }
}

// Measure one resample: the weight of the hits of each cell into `counts` and, of those `n_kept` labels that are
// wanted, the highest precision at or beyond each recall value, (T, R, k). Image i counts `weights[i]` times. `base` has
// the image of what counts unless it matches, `change` that of what counts (sign 1), or does not (-1), because of what
// it matches. A hit has its image, and how much of either list stands in front of it; a cell the same, and its hits
// [start, stop). `needed` and the arithmetic are those of `jaccard_interpolate`. `room` takes `n_base` + `n_change` + 2
// totals and those of the largest cell, twice, `envelope` the precision at each weight of hits up to that of the
// heaviest cell, and MARGIN + 1 more.
EXPORTED void jaccard_weigh_curves(
    std::int64_t n_thresholds, std::int64_t n_recalls, std::int64_t n_labels, std::int64_t n_kept, std::int64_t n_base,
    std::int64_t n_change, double epsilon, const std::int64_t *weights, const std::int32_t *base,
    const std::int32_t *change, const std::int8_t *sign, const std::int32_t *image, const std::int32_t *place_in_base,
    const std::int32_t *place_in_change, const std::int32_t *cell_in_base, const std::int32_t *cell_in_change,
    const std::int64_t *start, const std::int64_t *stop, const std::int64_t *kept, const std::int64_t *needed,
    std::int64_t *room, double *envelope, double *precision, std::int64_t *counts) {
    constexpr std::int64_t MARGIN = 3;
    std::int64_t *const of_base = room, *const of_change = of_base + n_base + 1, *const hits = of_change + n_change + 1;
    of_base[0] = of_change[0] = 0;
    if (n_kept != 0) {
        for (std::int64_t i = 0; i < n_base; ++i) of_base[i + 1] = of_base[i] + weights[base[i]];
        for (std::int64_t i = 0; i < n_change; ++i) of_change[i + 1] = of_change[i] + sign[i] * weights[change[i]];
    }
    for (std::int64_t t = 0; t < n_thresholds; ++t, precision += n_recalls * n_kept) {
        for (std::int64_t k = 0, j = 0; k < n_labels; ++k, ++start, ++stop, ++cell_in_base, ++cell_in_change) {
            const std::int64_t first = *start, n = *stop - first;
            std::int64_t total = 0;
            if (j == n_kept || kept[j] != k) {
                for (std::int64_t i = first; i < first + n; ++i) total += weights[image[i]];
                *counts++ = total;
                continue;
            }
            std::int64_t *const before = hits + n;
            const std::int64_t outside = of_base[*cell_in_base] + of_change[*cell_in_change];
            // A hit of no weight adds nothing to recall, and its precision is no higher than that of the one in front: it
            // is written, and the next one over it.
            std::int64_t m = 0;
            for (std::int64_t i = first; i < first + n; ++i) {
                const std::int64_t weight = weights[image[i]];
                hits[m] = total += weight;
                before[m] = of_base[place_in_base[i]] + of_change[place_in_change[i]] - outside;
                m += weight != 0;
            }
            *counts++ = total;
            double highest = 0;
            for (std::int64_t i = m; i-- != 0;) {
                const auto counted = static_cast<double>(std::max<std::int64_t>(before[i], 1));
                highest = std::max(highest, static_cast<double>(hits[i]) / (counted + epsilon));
                // Most hits weigh no more than this; what is written below the hit in front is written over by that.
                double *const to = envelope + hits[i];
                to[0] = to[1] = to[2] = to[MARGIN] = highest;
                const std::int64_t outside = i == 0 ? 0 : hits[i - 1];
                for (std::int64_t at = outside + 1; at < hits[i] - MARGIN; ++at) envelope[at + MARGIN] = highest;
            }
            for (std::int64_t r = 0; r < n_recalls; ++r) {
                const std::int64_t wanted = needed[j * n_recalls + r];
                precision[r * n_kept + j] = wanted <= total ? envelope[wanted + MARGIN] : 0;
            }
            ++j;
        }
    }
}

// Hash rows of boxes to 64 bits, as data/signature.py does: names by their own hashes, then flags, box, score and area.
EXPORTED void jaccard_hash_rows(std::int64_t n, const std::uint64_t *image_hash, const std::uint64_t *label_hash,
                                const std::uint64_t *primes, const std::int32_t *image, const std::int32_t *label,
                                const std::uint8_t *flags, const double *xywh, const double *score,
                                const double *area, std::uint64_t *state) {
    for (std::int64_t i = 0; i < n; ++i) {
        std::uint64_t word = image_hash[image[i]] * primes[0] + label_hash[label[i]] * primes[1] + flags[i] * primes[2];
        const double *const box = xywh + 4 * i;
        for (const double value : {box[0], box[1], box[2], box[3], score == nullptr ? 0.0 : score[i], area[i]}) {
            const double positive_zero = value + 0.0;
            std::uint64_t bits = 0;
            std::memcpy(&bits, &positive_zero, sizeof bits);
            word ^= bits;
            word ^= word >> 33;
            word *= 0xFF51AFD7ED558CCDu;
            word ^= word >> 33;
        }
        state[i] = word;
    }
}

// Put box, score and area of some rows into words, `stride` of them a row, as data/signature.py does.
EXPORTED void jaccard_pack_rows(std::int64_t n, std::int64_t stride, const std::int64_t *rows, const double *xywh,
                                const double *score, const double *area, std::uint64_t *words) {
    for (std::int64_t at = 0; at < n; ++at, words += stride) {
        const std::int64_t i = rows[at];
        const double *const box = xywh + 4 * i;
        const double values[] = {box[0] + 0.0, box[1] + 0.0, box[2] + 0.0, box[3] + 0.0,
                                 score == nullptr ? 0.0 : score[i] + 0.0, area[i] + 0.0};
        std::memcpy(words, values, sizeof values);
    }
}

// Compare poses i of one column with poses j of another, pair by pair, of `k` points each: `error` has a row for each
// pair that may reach the threshold, of as many numbers as `number` says, and `kept` its pair. How like they are is the
// mean of exp(-error), which is left to NumPy, whose exponential has bits of its own. Returns how many pairs are kept.
EXPORTED std::int64_t jaccard_compare_poses(std::int64_t n, const std::int64_t *i, const std::int64_t *j,
                                            std::int64_t k, const double *points, const double *other_points,
                                            const double *area, const double *zone, const double *variances,
                                            double threshold, std::int64_t *kept, std::int64_t *number,
                                            double *error) {
    const auto away = [](double low, double x, double high) {
        return std::max(low - x, 0.0) + std::max(x - high, 0.0);
    };
    std::int64_t n_kept = 0;
    for (std::int64_t pair = 0; pair < n; ++pair) {
        const double *const a = points + 3 * k * i[pair], *const b = other_points + 3 * k * j[pair];
        const double *const z = zone + 4 * j[pair];
        const double size = area[j[pair]] + std::numeric_limits<double>::epsilon();
        std::int64_t m = 0, n_near = 0;
        for (std::int64_t p = 0; p < k; ++p) m += b[3 * p + 2] > 0;
        const bool is_free = m == 0;  // nothing is labelled: how far points are from the zone around the object
        if (is_free) m = k;
        const auto is_compared = [&](std::int64_t p) { return is_free || b[3 * p + 2] > 0; };
        const auto square = [&](std::int64_t p) {
            const double x = a[3 * p], y = a[3 * p + 1];
            const double dx = is_free ? away(z[0], x, z[2]) : x - b[3 * p];
            const double dy = is_free ? away(z[1], y, z[3]) : y - b[3 * p + 1];
            return dx * dx + dy * dy;
        };
        // Which points are labelled cannot be foretold: no branch depends on it.
        for (std::int64_t p = 0; p < k; ++p) n_near += is_compared(p) & (square(p) < FAR * 2 * variances[p] * size);
        if (size <= 0) n_near = m;
        // Of those that are far each adds little: most pairs cannot reach the threshold.
        const auto near = static_cast<double>(n_near), far = static_cast<double>(m - n_near);
        if (near + far * LIKE_IF_FAR < threshold * static_cast<double>(m)) continue;
        double *row = error + k * n_kept;
        for (std::int64_t p = 0; p < k; ++p) {
            if (is_compared(p)) *row++ = square(p) / variances[p] / size / 2;
        }
        kept[n_kept] = pair;
        number[n_kept++] = m;
    }
    return n_kept;
}

// Copy rows of values of `width` bytes each, one row behind the other.
EXPORTED void jaccard_gather(std::int64_t n, std::int64_t width, const char *values, const std::int64_t *offsets,
                             const std::int64_t *rows, char *taken) {
    for (std::int64_t i = 0; i < n; ++i) {
        const auto bytes = static_cast<std::size_t>((offsets[rows[i] + 1] - offsets[rows[i]]) * width);
        if (bytes != 0) std::memcpy(taken, values + offsets[rows[i]] * width, bytes);
        taken += bytes;
    }
}

// Label maps in compiled code: the filters of PNG undone, and pixels counted by the pair of values that two maps have.
// What zlib gives is filtered as https://www.w3.org/TR/png-3/#9Filters has it, row by row, bytes of a pixel apart.

#include <algorithm>
#include <cstdlib>

#include "reader.hpp"

namespace {

using Int = std::int64_t;
using Byte = std::uint8_t;
using Word = std::uint64_t;

enum Filter : Byte { NONE, SUB, UP, AVERAGE, PAETH };

template <class Value>
Value loaded(const void *place) {
    Value value;
    std::memcpy(&value, place, sizeof value);
    return value;
}

// Eight sums of bytes, each modulo 256: the highest bits are added apart, so that nothing is carried into a neighbour.
Word bytewise_sum(Word a, Word b) {
    constexpr Word LOW = 0x7f7f7f7f7f7f7f7f;
    return ((a & LOW) + (b & LOW)) ^ ((a ^ b) & ~LOW);
}

Byte paeth(int left, int above, int corner) {
    const int to_left = std::abs(above - corner), to_above = std::abs(left - corner);
    const int to_corner = std::abs(left + above - 2 * corner);
    if (to_left <= to_above && to_left <= to_corner) return static_cast<Byte>(left);
    return static_cast<Byte>(to_above <= to_corner ? above : corner);
}

// Write what comes next in a row as long as its filter foretells it, which it does nearly everywhere in a label map.
// Returns how many bytes these are, in whole pixels. Of raw and of both rows there are n.
template <Int STEP>
Int write_foretold(Byte filter, const Byte *raw, Int n, const Byte *above, Byte *row) {
    constexpr Int AT_ONCE = sizeof(Word), MOVE = AT_ONCE / STEP * STEP;
    Int at = 0;
    const auto goes_on = [&] { return at + AT_ONCE <= n && loaded<Word>(raw + at) == 0; };
    if (filter == AVERAGE || !goes_on()) return 0;
    // Of its three neighbours Paeth takes the one above where the other two are equal, and the one to the left where
    // these are the other two.
    if (filter == PAETH && std::equal(row - STEP, row, above - STEP)) {
        for (; goes_on(); at += MOVE) std::memcpy(row + at, above + at, AT_ONCE);
    } else {
        Byte pixels[AT_ONCE];
        for (Int i = 0; i < AT_ONCE; ++i) pixels[i] = row[i % STEP - STEP];
        const auto is_level = [&] { return loaded<Word>(above + at) == loaded<Word>(above + at - STEP); };
        for (; goes_on() && (filter == SUB || is_level()); at += MOVE) std::memcpy(row + at, pixels, AT_ONCE);
    }
    return at;
}

// Undo the filter of a row of n bytes, of pixels of STEP bytes. Before `row` and `above`, both of them, is a pixel of 0.
template <Int STEP>
void unfilter_row(Byte filter, const Byte *raw, Int n, const Byte *above, Byte *row) {
    constexpr Int AT_ONCE = sizeof(Word);
    Int at = 0;
    if (filter == NONE) {
        std::copy(raw, raw + n, row);
    } else if (filter == UP) {
        for (; at + AT_ONCE <= n; at += AT_ONCE) {
            const Word sum = bytewise_sum(loaded<Word>(raw + at), loaded<Word>(above + at));
            std::memcpy(row + at, &sum, sizeof sum);
        }
        for (; at < n; ++at) row[at] = static_cast<Byte>(raw[at] + above[at]);
    } else {
        while (at < n) {
            at += write_foretold<STEP>(filter, raw + at, n - at, above + at, row + at);
            for (const Int stop = std::min(at + AT_ONCE / STEP * STEP, n); at < stop; ++at) {
                const int left = row[at - STEP], guess = filter == SUB       ? left
                                                         : filter == AVERAGE ? (left + above[at]) / 2
                                                                             : paeth(left, above[at], above[at - STEP]);
                row[at] = static_cast<Byte>(raw[at] + guess);
            }
        }
    }
}

// A value of each pixel: a byte, two of them with the high one first, or red + 256 green + 65,536 blue.
void pack_row(const Byte *row, Int width, Byte *value) { std::copy(row, row + width, value); }

void pack_row(const Byte *row, Int width, std::uint16_t *value) {
    for (Int x = 0; x < width; ++x, row += 2) value[x] = static_cast<std::uint16_t>(row[0] << 8 | row[1]);
}

void pack_row(const Byte *row, Int width, std::uint32_t *value) {
    for (Int x = 0; x < width; ++x, row += 3) {
        value[x] = row[0] | std::uint32_t{row[1]} << 8 | std::uint32_t{row[2]} << 16;
    }
}

template <Int STEP, class Value>
Int unfilter(Int height, Int width, const Byte *raw, Byte *scratch, Value *values) {
    const Int n = width * STEP;
    Byte *row = scratch + STEP, *above = row + n + STEP;
    for (Int y = 0; y < height; ++y, raw += 1 + n) {
        if (*raw > PAETH) return NOT_PLAIN;
        std::swap(row, above);
        unfilter_row<STEP>(*raw, raw + 1, n, above, row);
        pack_row(row, width, values + y * width);
    }
    return 0;
}

// Pairs of values and their pixels, in a table that the caller gives: a power of two of places, no more than half of
// them taken. A place without pixels is free.
struct PairTable {
    Word *key;
    Int *pixels;
    Int capacity, n;

    bool add(Word pair, Int count) {
        const Word mask = static_cast<Word>(capacity) - 1;
        Word place = (pair * 0x9e3779b97f4a7c15) >> 32 & mask;  // the golden ratio: neighbours come to lie apart
        while (pixels[place] != 0 && key[place] != pair) place = (place + 1) & mask;
        if (pixels[place] == 0) {
            if (2 * ++n > capacity) return false;
            key[place] = pair;
        }
        pixels[place] += count;
        return true;
    }
};

// Count by runs, for neighbours are mostly alike: these are compared eight bytes at a time.
template <class Value>
Int count_pairs(Int n, const Value *gt, const Value *pred, PairTable table) {
    constexpr Int AT_ONCE = sizeof(Word) / sizeof(Value);
    constexpr Word ONES = ~Word{0} / static_cast<Value>(~Value{0});  // times a value: eight bytes of it
    for (Int at = 0; at < n;) {
        const Int first = at++;
        const Value a = gt[first], b = pred[first];
        const Word as = ONES * a, bs = ONES * b;
        while (at + AT_ONCE <= n && loaded<Word>(gt + at) == as && loaded<Word>(pred + at) == bs) at += AT_ONCE;
        while (at < n && gt[at] == a && pred[at] == b) ++at;
        if (!table.add(Word{a} << 32 | b, at - first)) return NOT_PLAIN;
    }
    return table.n;
}

}  // namespace

// Undo the filters of `height` rows of 1 + width * step bytes, step 1 to 3, and write a value for each pixel: of one
// byte, of two, or of four. `scratch` has room for two rows of a pixel more, all of it 0.
// Returns 0, or NOT_PLAIN where a row has a filter that there is not.
EXPORTED Int jaccard_unfilter(Int height, Int width, Int step, const Byte *raw, Byte *scratch, void *values) {
    if (step == 1) return unfilter<1>(height, width, raw, scratch, static_cast<Byte *>(values));
    if (step == 2) return unfilter<2>(height, width, raw, scratch, static_cast<std::uint16_t *>(values));
    return unfilter<3>(height, width, raw, scratch, static_cast<std::uint32_t *>(values));
}

// Count the pixels of each pair of values of two maps of n pixels, of `size` bytes each: 1, 2 or 4. Key and pixels are
// a table of `capacity` places, a power of two; all pixels are 0. A key has the value of the first map above 32 bits.
// Returns how many pairs there are, or NOT_PLAIN where they take more than half of the table.
EXPORTED Int jaccard_count_pairs(Int n, Int size, const void *gt, const void *pred, Int capacity, Word *key,
                                 Int *pixels) {
    const PairTable table{key, pixels, capacity, 0};
    const auto counted = [&](auto value) {
        using Value = decltype(value);
        return count_pairs(n, static_cast<const Value *>(gt), static_cast<const Value *>(pred), table);
    };
    if (size == 1) return counted(Byte{0});
    return size == 2 ? counted(std::uint16_t{0}) : counted(std::uint32_t{0});
}

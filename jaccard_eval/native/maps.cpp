// Label maps in compiled code: pixels counted by the pair of values that two maps have.

#include "reader.hpp"

namespace {

using Int = std::int64_t;
using Byte = std::uint8_t;
using Word = std::uint64_t;

template <class Value>
Value loaded(const void *place) {
    Value value;
    std::memcpy(&value, place, sizeof value);
    return value;
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

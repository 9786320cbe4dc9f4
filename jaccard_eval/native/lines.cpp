// Tables in compiled code: numbers that are read, rows of pieces that come again and again and of numbers as Python
// spells them.

#include <cmath>

#include "reader.hpp"

namespace {

using Int = std::int64_t;
constexpr int LONGEST = 32;                        // no number takes more characters
constexpr double LARGE = 1e16, SMALL[] = {1e-4, 1e-5};  // beyond which numbers have an exponent, in JSON the second
constexpr double PER_UNIT = 1e6, FEW = 1e9;

#if defined(__cpp_lib_to_chars)
// The fewest digits that are read back as a number, as `repr` has them, or as JSON.
char *put_number(char *at, double value, bool json, bool with_point) {
    if (std::signbit(value)) *at++ = '-', value = -value;
    const bool is_plain = value == 0 || (value >= SMALL[json] && value < LARGE);
    // Of up to 15 digits, no two texts are one float: what is read back is the only one, and needs no search.
    const Int parts = value < FEW ? static_cast<Int>(value * PER_UNIT + 0.5) : 0, scale = static_cast<Int>(PER_UNIT);
    if (is_plain && value < FEW && static_cast<double>(parts) / PER_UNIT == value) {
        at = std::to_chars(at, at + LONGEST, parts / scale).ptr;
        Int rest = parts % scale;
        if (rest == 0 && !with_point) return at;
        *at++ = '.';
        do {
            rest *= 10;
            *at++ = static_cast<char>('0' + rest / scale);
            rest %= scale;
        } while (rest != 0);
        return at;
    }
    const auto shape = is_plain ? std::chars_format::fixed : std::chars_format::scientific;
    char *const end = std::to_chars(at, at + LONGEST, value, shape).ptr;
    const Name text(at, static_cast<std::size_t>(end - at));
    if (is_plain) {
        const bool is_whole = text.find('.') == Name::npos;
        if (is_whole && with_point) std::memcpy(end, ".0", 2);
        return is_whole && with_point ? end + 2 : end;
    }
    if (!json) return end;
    // An exponent has neither a plus nor a zero in front.
    char *to = at + text.find('e') + 1, *from = to;
    if (*from++ == '-') ++to;
    while (*from == '0') ++from;
    while (from != end) *to++ = *from++;
    return to;
}
#endif

}  // namespace

// Read a list of JSON of up to `capacity` numbers. Returns how many there are, or NOT_PLAIN.
EXPORTED Int jaccard_read_numbers(Text text, std::size_t size, Int capacity, double *values) {
    Reader reader(text, size, 0);
    Int n = 0;
    reader.skip_blanks();
    const bool is_read = reader.read_list([&] { return n < capacity && reader.read_number(values[n++]); });
    reader.skip_blanks();
    return is_read && reader.at_end() ? n : NOT_PLAIN;
}

// Write n rows of a table one behind the other: of each column the piece that the row's code picks among `texts`, which
// begin at `starts`, or `widths` numbers with `mark` between. `out` has room for all, `stops` is where each row ends.
// Returns NOT_PLAIN where a number is not finite, or this library cannot write any.
EXPORTED Int jaccard_write_rows(Int n, Int n_columns, const Text *texts, const Int *const *starts,
                                const Int *const *codes, const double *const *numbers, const Int *widths, Int mark,
                                Int json, Int with_point, char *out, Int *stops) {
#if defined(__cpp_lib_to_chars)
    char *at = out;
    for (Int row = 0; row < n; ++row) {
        for (Int k = 0; k < n_columns; ++k) {
            if (numbers[k] == nullptr) {
                const Int code = codes[k] == nullptr ? 0 : codes[k][row], start = starts[k][code];
                const auto size = static_cast<std::size_t>(starts[k][code + 1] - start);
                std::memcpy(at, texts[k] + start, size);
                at += size;
                continue;
            }
            const double *const values = numbers[k] + row * widths[k];
            for (Int i = 0; i < widths[k]; ++i) {
                if (!(std::fabs(values[i]) <= DBL_MAX)) return NOT_PLAIN;
                if (i != 0) *at++ = static_cast<char>(mark);
                at = put_number(at, values[i], json != 0, with_point != 0);
            }
        }
        stops[row] = at - out;
    }
    return at - out;
#else
    return NOT_PLAIN;
#endif
}

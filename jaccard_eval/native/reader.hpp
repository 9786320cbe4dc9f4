// What the files of the core share: the reader of a text of JSON, and how functions are seen from outside.
//
// Whatever is out of the ordinary is refused, and read by the Python readers, which find out what it is.

#pragma once

#include <cfloat>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>

#if FLT_EVAL_METHOD != 0
#error "intermediate results are of another precision than those of Python"
#endif

#if defined(_WIN32)
#define EXPORTED extern "C" __declspec(dllexport)
#else
#define EXPORTED extern "C" __attribute__((visibility("default")))
#endif

namespace {

using Text = const char *;
using Name = std::string_view;
constexpr std::int64_t NOT_PLAIN = -1;
constexpr int MAX_DEPTH = 64;                            // of values that are passed over; none has a use for more
constexpr int MAX_INTEGER_DIGITS = 18;                   // fit 64 bits whatever they are
constexpr std::uint64_t MAX_EXACT = std::uint64_t{1} << 53;  // whole numbers up to here are floats without rounding
// Powers of ten that are floats without rounding. A quotient of two such numbers is rounded once: it is the nearest
// float to the decimal number (Clinger 1990, "How to read floating point numbers accurately").
constexpr double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int MAX_POWER = 22;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

#if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define EIGHT_AT_A_TIME 1
constexpr std::ptrdiff_t EIGHT = 8;
constexpr std::uint64_t SCALES[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// The next eight characters, each less '0': a digit is its value, and all else has a high bit.
std::uint64_t load_eight(Text at) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word ^ 0x3030303030303030u;
}

// How many digits those begin with. Adding 6 carries from 10 on into the high bits of a character, and from one
// character into the next only behind the first that is no digit.
std::ptrdiff_t count_digits(std::uint64_t word) {
    const std::uint64_t others = (word | (word + 0x0606060606060606u)) & 0xF0F0F0F0F0F0F0F0u;
    return others == 0 ? EIGHT : __builtin_ctzll(others) / 8;
}

// The number that the first `n` of them are, 1 to 8: neighbours are joined to pairs, these to fours and to all eight.
std::uint64_t join_digits(std::uint64_t word, std::ptrdiff_t n) {
    word <<= 8 * (EIGHT - n);
    word = (word * 10 + (word >> 8)) & 0x00FF00FF00FF00FFu;
    word = (word * 100 + (word >> 16)) & 0x0000FFFF0000FFFFu;
    return (word * 10000 + (word >> 32)) & 0xFFFFFFFFu;
}
#endif

// Reads one text from its first byte to its last. A method that fails returns false, and the text is not plain.
class Reader {
  public:
    Reader(Text text, std::size_t size, std::size_t position) : begin(text), at(text + position), end(text + size) {}

    std::size_t position() const { return static_cast<std::size_t>(at - begin); }
    bool at_end() const { return at == end; }
    char next() const { return at == end ? '\0' : *at; }

    void skip_blanks() {
        while (at != end && *at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) ++at;
    }

    bool take(char c) {
        if (at == end || *at != c) return false;
        ++at;
        return true;
    }

    // A mark, and the blanks on both of its sides.
    bool take_mark(char c) {
        skip_blanks();
        if (!take(c)) return false;
        skip_blanks();
        return true;
    }

    template <std::size_t N>
    bool take_key(const char (&key)[N]) {
        constexpr std::size_t length = N - 1;
        if (static_cast<std::size_t>(end - at) < length || std::memcmp(at, key, length) != 0) return false;
        at += length;
        return true;
    }

    bool read_integer(std::int64_t &value) {
        const bool negative = take('-');
        const Text first = at;
        std::uint64_t read = 0;
        const auto n = read_digits(read);
        if (n == 0 || n > MAX_INTEGER_DIGITS || (n > 1 && *first == '0')) return false;
        if (at != end && (*at == '.' || *at == 'e' || *at == 'E')) return false;
        value = negative ? -static_cast<std::int64_t>(read) : static_cast<std::int64_t>(read);
        return true;
    }

    bool read_flag(std::int8_t &value) {
        std::int64_t read = 0;
        if (!read_integer(read) || read < 0 || read > 1) return false;
        value = static_cast<std::int8_t>(read);
        return true;
    }

    bool read_number(double &value) {
        const Text first = at;
        const bool negative = take('-');
        const Text whole = at;
        std::uint64_t read = 0;
        auto n = read_digits(read);
        if (n == 0 || (n > 1 && *whole == '0')) return false;
        std::ptrdiff_t n_decimals = 0;
        if (take('.')) {
            n_decimals = read_digits(read);
            if (n_decimals == 0) return false;
            n += n_decimals;
        }
        const bool has_exponent = at != end && (*at == 'e' || *at == 'E');
        // Without decimals it is a whole number: those readers make of it have no minus zero.
        if (negative && read == 0 && n_decimals == 0) return false;
        if (!has_exponent && n <= MAX_INTEGER_DIGITS && read <= MAX_EXACT && n_decimals <= MAX_POWER) {
            const double magnitude = static_cast<double>(read) / POWERS[n_decimals];
            value = negative ? -magnitude : magnitude;
            return true;
        }
        if (has_exponent) {
            ++at;
            if (at != end && (*at == '+' || *at == '-')) ++at;
            if (!skip_digits()) return false;
        }
#if defined(__cpp_lib_to_chars)
        const auto result = std::from_chars(first, at, value);  // the nearest float, in any locale
        return result.ec == std::errc() && result.ptr == at;
#else
        return false;
#endif
    }

    bool read_box(double *box) {
        if (!take('[')) return false;
        for (int i = 0; i < 4; ++i) {
            skip_blanks();
            if (!read_number(box[i])) return false;
            skip_blanks();
            if (!take(i == 3 ? ']' : ',')) return false;
        }
        return true;
    }

    // What `read_item` reads, any number of times.
    template <typename ReadItem>
    bool read_list(ReadItem read_item) {
        if (!take('[')) return false;
        skip_blanks();
        if (take(']')) return true;
        do {
            skip_blanks();
            if (!read_item()) return false;
            skip_blanks();
        } while (take(','));
        return take(']');
    }

    // An object: `read_field` reads the value of a key of `names`, given by its place there; others are passed over.
    // No key of `names` comes twice. `seen` has a bit for each that comes.
    template <std::size_t N, typename ReadField>
    bool read_object(const Name (&names)[N], unsigned &seen, ReadField read_field) {
        seen = 0;
        return read_fields([&](Name key) {
            std::size_t field = 0;
            while (field < N && names[field] != key) ++field;
            if (field == N) return skip_value(MAX_DEPTH);
            if ((seen >> field & 1u) != 0) return false;
            seen |= 1u << field;
            return read_field(field);
        });
    }

    bool skip_one() { return at == end ? false : (++at, true); }

    // Everything up to the next such character, and that one.
    bool skip_past(char c) {
        const void *const found = at == end ? nullptr : std::memchr(at, c, static_cast<std::size_t>(end - at));
        if (found != nullptr) at = static_cast<Text>(found) + 1;
        return found != nullptr;
    }

    // A value of any kind, whose grammar is that of RFC 8259; that its texts are UTF-8 is known before.
    bool skip_value(int depth) {
        switch (at == end || depth == 0 ? '\0' : *at) {
            case '"': return skip_text();
            case '[': return read_list([&] { return skip_value(depth - 1); });
            case '{': return read_fields([&](Name) { return skip_value(depth - 1); });
            case 't': return take_key("true");
            case 'f': return take_key("false");
            case 'n': return take_key("null");
            default: return skip_number();
        }
    }

    // What stands between quotes, escapes as they are written.
    bool read_text(Name &text) {
        const Text first = at + 1;
        if (!skip_text()) return false;
        text = Name(first, static_cast<std::size_t>(at - first) - 1);
        return true;
    }

  private:
    template <typename ReadField>
    bool read_fields(ReadField read_field) {
        if (!take('{')) return false;
        skip_blanks();
        if (take('}')) return true;
        do {
            skip_blanks();
            const Text first = at;
            if (!skip_text()) return false;
            const Name key(first + 1, static_cast<std::size_t>(at - first) - 2);
            // Written with escapes, a key may be one of those that are looked for.
            if (key.find('\\') != Name::npos || !take_mark(':') || !read_field(key)) return false;
            skip_blanks();
        } while (take(','));
        return take('}');
    }

    // Appends all digits that follow to a number, and returns how many; it wraps where they are too many.
    std::ptrdiff_t read_digits(std::uint64_t &number) {
        const Text first = at;
#if defined(EIGHT_AT_A_TIME)
        while (end - at >= EIGHT) {
            const std::uint64_t word = load_eight(at);
            const auto n = count_digits(word);
            if (n == 0) return at - first;
            number = number * SCALES[n] + join_digits(word, n);
            at += n;
            if (n < EIGHT) return at - first;
        }
#endif
        while (at != end && is_digit(*at)) number = number * 10 + static_cast<std::uint64_t>(*at++ - '0');
        return at - first;
    }

    bool skip_digits() {
        const Text first = at;
        while (at != end && is_digit(*at)) ++at;
        return at != first;
    }

    bool skip_number() {
        take('-');
        const Text whole = at;
        if (!skip_digits() || (*whole == '0' && at - whole > 1)) return false;
        if (take('.') && !skip_digits()) return false;
        if (take('e') || take('E')) {
            if (!take('+')) take('-');
            return skip_digits();
        }
        return true;
    }

    bool skip_text() {
        if (!take('"')) return false;
        while (at != end && *at != '"') {
            if (static_cast<unsigned char>(*at) < ' ') return false;
            if (*at++ == '\\' && !skip_escaped()) return false;
        }
        return take('"');
    }

    bool skip_escaped() {
        if (at == end || *at == '\0') return false;
        if (*at++ != 'u') return std::strchr("\"\\/bfnrt", at[-1]) != nullptr;
        for (int i = 0; i < 4; ++i, ++at) {
            if (at == end || !(is_digit(*at) || (*at >= 'a' && *at <= 'f') || (*at >= 'A' && *at <= 'F'))) return false;
        }
        return true;
    }

    Text begin, at, end;
};

// Zeros, or nothing where there is no memory for them.
template <typename T>
std::unique_ptr<T[]> make_room(std::int64_t n) {
    return std::unique_ptr<T[]>(new (std::nothrow) T[static_cast<std::size_t>(n)]());
}

}  // namespace

// What is quicker in compiled code, behind a plain C interface: no part of Python is used here.
//
// Whatever is out of the ordinary is refused, and read by the Python readers, which find out what it is. So nothing
// here decides anything: what is accepted has one meaning, and the same values come out to the last bit.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

using Text = const char *;
constexpr std::int64_t NOT_PLAIN = -1;
constexpr int MAX_INTEGER_DIGITS = 18;                   // fit 64 bits whatever they are
constexpr std::uint64_t MAX_EXACT = std::uint64_t{1} << 53;  // whole numbers up to here are floats without rounding
// Powers of ten that are floats without rounding. A quotient of two such numbers is rounded once: it is the nearest
// float to the decimal number (Clinger 1990, "How to read floating point numbers accurately").
constexpr double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int MAX_POWER = 22;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads one text from its first byte to its last. A method that fails returns false, and the text is not plain.
class Reader {
  public:
    Reader(Text text, std::size_t size, std::size_t position) : begin(text), at(text + position), end(text + size) {}

    std::size_t position() const { return static_cast<std::size_t>(at - begin); }
    bool at_end() const { return at == end; }

    void skip_blanks() {
        while (at != end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) ++at;
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
        std::int64_t read = 0;
        while (at != end && is_digit(*at) && at - first <= MAX_INTEGER_DIGITS) read = read * 10 + (*at++ - '0');
        const auto n = at - first;
        if (n == 0 || n > MAX_INTEGER_DIGITS || (n > 1 && *first == '0')) return false;
        if (at != end && (*at == '.' || *at == 'e' || *at == 'E')) return false;
        value = negative ? -read : read;
        return true;
    }

    bool read_number(double &value) {
        const Text first = at;
        const bool negative = take('-');
        const Text whole = at;
        std::uint64_t read = 0;  // wraps where there are too many digits, and is not used then
        while (at != end && is_digit(*at)) read = read * 10 + static_cast<std::uint64_t>(*at++ - '0');
        auto n = at - whole;
        if (n == 0 || (n > 1 && *whole == '0')) return false;
        std::ptrdiff_t n_decimals = 0;
        if (take('.')) {
            const Text decimals = at;
            while (at != end && is_digit(*at)) read = read * 10 + static_cast<std::uint64_t>(*at++ - '0');
            n_decimals = at - decimals;
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
            const Text digits = at;
            while (at != end && is_digit(*at)) ++at;
            if (at == digits) return false;
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

  private:
    Text begin, at, end;
};

enum Field : unsigned { SCORE = 1, BOX = 2, IMAGE = 4, CATEGORY = 8, ALL = 15 };

}  // namespace

#if defined(_WIN32)
#define EXPORTED extern "C" __declspec(dllexport)
#else
#define EXPORTED extern "C" __attribute__((visibility("default")))
#endif

// Of the functions below: a library that was built from an older text is not used.
EXPORTED std::int64_t jaccard_core_version() { return 1; }

// Read up to `capacity` records of a COCO results list whose records have four numeric fields, each once, and no
// others. `position` is 0 at first, then where the next call goes on; it is `size` after the last record.
// Returns how many records there are, or NOT_PLAIN.
EXPORTED std::int64_t jaccard_scan_results(Text text, std::size_t size, std::size_t *position, std::int64_t capacity,
                                           std::int64_t *image, std::int64_t *category, double *box, double *score) {
    Reader reader(text, size, *position);
    if (*position == 0) {
        if (!reader.take('[')) return NOT_PLAIN;
        reader.skip_blanks();
    }
    std::int64_t n = 0;
    for (bool more = true; more && n < capacity; ++n) {
        unsigned seen = 0;
        if (!reader.take('{')) return NOT_PLAIN;
        do {
            reader.skip_blanks();
            unsigned field = 0;
            if (reader.take_key("\"score\"")) field = SCORE;
            else if (reader.take_key("\"bbox\"")) field = BOX;
            else if (reader.take_key("\"image_id\"")) field = IMAGE;
            else if (reader.take_key("\"category_id\"")) field = CATEGORY;
            if (field == 0 || (seen & field) != 0 || !reader.take_mark(':')) return NOT_PLAIN;
            seen |= field;
            const bool is_read = field == SCORE   ? reader.read_number(score[n])
                                 : field == BOX   ? reader.read_box(box + 4 * n)
                                 : field == IMAGE ? reader.read_integer(image[n])
                                                  : reader.read_integer(category[n]);
            if (!is_read) return NOT_PLAIN;
            reader.skip_blanks();
        } while (reader.take(','));
        if (seen != ALL || !reader.take('}')) return NOT_PLAIN;
        reader.skip_blanks();
        more = reader.take(',');
        reader.skip_blanks();
        if (!more) {
            if (!reader.take(']')) return NOT_PLAIN;
            reader.skip_blanks();
            if (!reader.at_end()) return NOT_PLAIN;
        } else if (reader.at_end()) {
            return NOT_PLAIN;
        }
    }
    *position = reader.position();
    return n;
}

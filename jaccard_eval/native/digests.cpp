// SHA-256 of many short rows (FIPS 180-4), by the instructions that x86 processors have for it. Without these it is
// refused: the library that Python has for it is as quick then.

#include "reader.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

namespace {

alignas(16) constexpr std::uint32_t START[] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
alignas(16) constexpr std::uint32_t ROUNDS[] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
constexpr int WORDS = 8;  // of 64 bits in a block
constexpr std::uint64_t MINUS_ZERO = std::uint64_t{1} << 63;

// Words of 32 bits from a place that is even to 16 bytes.
__m128i four(const void *at) { return _mm_load_si128(static_cast<const __m128i *>(at)); }

bool has_instructions() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1u) != 0;
}

// Takes in a row of words; `a` and `b` are the state as the instructions have it: words ABEF and CDGH, from the last.
struct Digest {
    __m128i a, b;
    std::int64_t n = 0;
    alignas(16) std::uint64_t block[WORDS];

    Digest()
        : a(_mm_set_epi32(int(START[0]), int(START[1]), int(START[4]), int(START[5]))),
          b(_mm_set_epi32(int(START[2]), int(START[3]), int(START[6]), int(START[7]))) {}

    __attribute__((target("sha,sse4.1"))) void absorb() {
        const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203), before_a = a, before_b = b;
        __m128i w[4] = {};
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {  // four rounds each
            __m128i &next = w[i % 4];
            const __m128i last = w[(i + 3) % 4];
            if (i < 4) {
                next = _mm_shuffle_epi8(four(block + 2 * i), swap);
            } else {
                next = _mm_add_epi32(_mm_sha256msg1_epu32(next, w[(i + 1) % 4]), _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
                next = _mm_sha256msg2_epu32(next, last);
            }
            const __m128i added = _mm_add_epi32(next, four(ROUNDS + 4 * i));
            b = _mm_sha256rnds2_epu32(b, a, added);
            a = _mm_sha256rnds2_epu32(a, b, _mm_shuffle_epi32(added, 0x0e));
        }
        a = _mm_add_epi32(a, before_a);
        b = _mm_add_epi32(b, before_b);
    }

    void add(std::uint64_t word) {
        block[n++ % WORDS] = word;
        if (n % WORDS == 0) absorb();
    }

    // The first `size` bytes, at most 32.
    void finish(char *bytes, std::size_t size) {
        const auto bits = static_cast<std::uint64_t>(n) * 64;
        for (add(0x80); n % WORDS != WORDS - 1;) add(0);
        add(__builtin_bswap64(bits));
        alignas(16) std::uint32_t of_a[4], of_b[4];
        _mm_store_si128(reinterpret_cast<__m128i *>(of_a), a);
        _mm_store_si128(reinterpret_cast<__m128i *>(of_b), b);
        std::uint32_t state[] = {of_a[3], of_a[2], of_b[3], of_b[2], of_a[1], of_a[0], of_b[1], of_b[0]};
        for (std::uint32_t &word : state) word = __builtin_bswap32(word);
        std::memcpy(bytes, state, size);
    }
};

}  // namespace
#endif

// Digest n rows of words of 64 bits: each `head_width` words of the head, then those of each column from its bounds[i]
// to bounds[i + 1]; where `floats` has the bit of a column its words are numbers, and -0.0 is 0.0. The first `size`
// bytes of each are kept. Returns 0, or NOT_PLAIN.
EXPORTED std::int64_t jaccard_digest_rows(std::int64_t n, std::int64_t head_width, const std::uint64_t *head,
                                          std::int64_t n_columns, const std::uint64_t *const *columns,
                                          const std::int64_t *const *bounds, std::int64_t floats, std::int64_t size,
                                          char *digests) {
#if defined(__x86_64__) && defined(__GNUC__)
    static const bool is_able = has_instructions();
    for (std::int64_t i = 0; is_able && i < n; ++i, digests += size) {
        Digest digest;
        for (std::int64_t k = 0; k < head_width; ++k) digest.add(*head++);
        for (std::int64_t column = 0; column < n_columns; ++column) {
            const std::uint64_t zero = (floats >> column & 1) != 0 ? MINUS_ZERO : 0;
            for (std::int64_t at = bounds[column][i]; at < bounds[column][i + 1]; ++at) {
                const std::uint64_t word = columns[column][at];
                digest.add(word == zero ? 0 : word);
            }
        }
        digest.finish(digests, static_cast<std::size_t>(size));
    }
    return is_able ? 0 : NOT_PLAIN;
#else
    return NOT_PLAIN;
#endif
}

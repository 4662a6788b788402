"""Numbers of enumerations: clients that were made from the protocol send them for the names.

A row has the names alone, in an order that says nothing of the numbers. These are those of the services whose
clients are tested; a number of any other enumeration is refused.
"""

from collections.abc import Mapping, Sequence
from typing import Final

_ENUMERATIONS: Final[tuple[Mapping[str, int], ...]] = (
    {"TYPE_UNSPECIFIED": 0, "PROTOCOL_BUFFER": 1, "AVRO": 2},
    {
        "STATE_UNSPECIFIED": 0,
        "ACTIVE": 1,
        "PERMISSION_DENIED": 2,
        "NOT_FOUND": 3,
        "SCHEMA_MISMATCH": 4,
        "IN_TRANSIT_LOCATION_RESTRICTION": 5,
        "VERTEX_AI_LOCATION_RESTRICTION": 6,
    },
    {"ENCODING_UNSPECIFIED": 0, "JSON": 1, "BINARY": 2},
    {
        "CRYPTO_KEY_PURPOSE_UNSPECIFIED": 0,
        "ENCRYPT_DECRYPT": 1,
        "ASYMMETRIC_SIGN": 5,
        "ASYMMETRIC_DECRYPT": 6,
        "RAW_ENCRYPT_DECRYPT": 7,
        "MAC": 9,
        "KEY_ENCAPSULATION": 10,
        "AES_WRAPPING": 11,
    },
    {
        "CRYPTO_KEY_VERSION_ALGORITHM_UNSPECIFIED": 0,
        "GOOGLE_SYMMETRIC_ENCRYPTION": 1,
        "AES_128_GCM": 41,
        "AES_256_GCM": 19,
        "AES_128_CBC": 42,
        "AES_256_CBC": 43,
        "AES_128_CTR": 44,
        "AES_256_CTR": 45,
        "RSA_SIGN_PSS_2048_SHA256": 2,
        "RSA_SIGN_PSS_3072_SHA256": 3,
        "RSA_SIGN_PSS_4096_SHA256": 4,
        "RSA_SIGN_PSS_4096_SHA512": 15,
        "RSA_SIGN_PKCS1_2048_SHA256": 5,
        "RSA_SIGN_PKCS1_3072_SHA256": 6,
        "RSA_SIGN_PKCS1_4096_SHA256": 7,
        "RSA_SIGN_PKCS1_4096_SHA512": 16,
        "RSA_SIGN_RAW_PKCS1_2048": 28,
        "RSA_SIGN_RAW_PKCS1_3072": 29,
        "RSA_SIGN_RAW_PKCS1_4096": 30,
        "RSA_DECRYPT_OAEP_2048_SHA256": 8,
        "RSA_DECRYPT_OAEP_3072_SHA256": 9,
        "RSA_DECRYPT_OAEP_4096_SHA256": 10,
        "RSA_DECRYPT_OAEP_4096_SHA512": 17,
        "RSA_DECRYPT_OAEP_2048_SHA1": 37,
        "RSA_DECRYPT_OAEP_3072_SHA1": 38,
        "RSA_DECRYPT_OAEP_4096_SHA1": 39,
        "EC_SIGN_P256_SHA256": 12,
        "EC_SIGN_P384_SHA384": 13,
        "EC_SIGN_SECP256K1_SHA256": 31,
        "EC_SIGN_ED25519": 40,
        "HMAC_SHA256": 32,
        "HMAC_SHA1": 33,
        "HMAC_SHA384": 34,
        "HMAC_SHA512": 35,
        "HMAC_SHA224": 36,
        "EXTERNAL_SYMMETRIC_ENCRYPTION": 18,
        "ML_KEM_768": 47,
        "ML_KEM_1024": 48,
        "KEM_XWING": 63,
        "PQ_SIGN_ML_DSA_44": 68,
        "PQ_SIGN_ML_DSA_65": 56,
        "PQ_SIGN_ML_DSA_87": 69,
        "PQ_SIGN_SLH_DSA_SHA2_128S": 57,
        "PQ_SIGN_HASH_SLH_DSA_SHA2_128S_SHA256": 60,
        "PQ_SIGN_ML_DSA_44_EXTERNAL_MU": 70,
        "PQ_SIGN_ML_DSA_65_EXTERNAL_MU": 67,
        "PQ_SIGN_ML_DSA_87_EXTERNAL_MU": 71,
        "AES_256_KWP": 73,
    },
    {
        "PROTECTION_LEVEL_UNSPECIFIED": 0,
        "SOFTWARE": 1,
        "HSM": 2,
        "EXTERNAL": 3,
        "EXTERNAL_VPC": 4,
        "HSM_SINGLE_TENANT": 5,
    },
    {
        "IMPORT_METHOD_UNSPECIFIED": 0,
        "RSA_OAEP_3072_SHA1_AES_256": 1,
        "RSA_OAEP_4096_SHA1_AES_256": 2,
        "RSA_OAEP_3072_SHA256_AES_256": 3,
        "RSA_OAEP_4096_SHA256_AES_256": 4,
        "RSA_OAEP_3072_SHA256": 5,
        "RSA_OAEP_4096_SHA256": 6,
        "HPKE_KEM_ML_KEM_768_HKDF_SHA256_AES_256_GCM": 8,
        "HPKE_KEM_ML_KEM_1024_HKDF_SHA256_AES_256_GCM": 9,
        "HPKE_KEM_XWING_HKDF_SHA256_AES_256_GCM": 10,
    },
)


def number_name(values: Sequence[str], number: int) -> str | None:
    """The name of a number in an enumeration with these values; None when it is not known."""
    for names in _ENUMERATIONS:
        # The first one has the enumeration's own name in it: `CRYPTO_KEY_PURPOSE_UNSPECIFIED`.
        if values and values[0] in names:
            return next((name for name, known in names.items() if known == number and name in values), None)
    return None

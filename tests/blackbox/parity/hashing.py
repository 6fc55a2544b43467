import hashlib
import hmac
import secrets
import ssl
import uuid
import zlib

print(hashlib.sha256(b"x").hexdigest(), hashlib.blake2b(b"x", digest_size=8).hexdigest())
print(sorted(hashlib.algorithms_guaranteed)[:5], hmac.new(b"k", b"m", "sha1").hexdigest())
print(hashlib.scrypt(b"p", salt=b"s", n=2, r=1, p=1).hex()[:16], zlib.crc32(b"x"))
print(uuid.uuid5(uuid.NAMESPACE_DNS, "x"), len(secrets.token_bytes()), hash(1), hash(1.5), hash(None) != 0)
print(ssl.OPENSSL_VERSION, ssl.create_default_context().verify_mode, len(ssl.create_default_context().get_ca_certs()) >= 0)

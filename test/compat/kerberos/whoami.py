"""Authenticates with GSSAPI and prints the identities of the connection: whoami.py HOST:PORT"""
import logging
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_acl

logging.basicConfig(level=logging.ERROR)
client = KazooClient(
    hosts=sys.argv[1],
    timeout=10,
    sasl_options={"mechanism": "GSSAPI", "service": "zookeeper"},
)
try:
    client.start(timeout=20)
except (AuthFailedError, KazooTimeoutError) as e:
    print("state", type(e).__name__)
    sys.exit(0)
print("state SaslAuthenticated")
path = client.create(
    "/mine", b"1", acl=[make_acl("auth", "", all=True)], ephemeral=True, sequence=True
)
acls, _ = client.get_acls(path)
for acl in acls:
    print("acl %s:%s" % (acl.id.scheme, acl.id.id))
print("data", client.get(path)[0])
client.stop()

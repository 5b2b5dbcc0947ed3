/* Authenticates with the GSSAPI of Cyrus SASL, as ZooKeeper's C client does if it is built with it, and
 * prints the identities of the connection: cyrus PORT SERVICE HOST MAXLAYER */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sasl/sasl.h>

static int sock;
static unsigned char frame[1 << 17];

static void die(const char *what) {
    fprintf(stderr, "cyrus: %s\n", what);
    exit(1);
}

static void put32(unsigned char *p, uint32_t v) {
    v = htonl(v);
    memcpy(p, &v, 4);
}

static uint32_t get32(const unsigned char *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return ntohl(v);
}

/* call sends a frame and receives the next one; it returns the length. */
static uint32_t call(const unsigned char *body, uint32_t n) {
    unsigned char head[4];
    uint32_t got = 0, want;
    put32(head, n);
    if (write(sock, head, 4) != 4 || write(sock, body, n) != (ssize_t)n)
        die("write");
    if (recv(sock, head, 4, MSG_WAITALL) != 4)
        die("the server has closed the connection");
    want = get32(head);
    if (want > sizeof frame)
        die("a frame is too long");
    while (got < want) {
        ssize_t r = read(sock, frame + got, want - got);
        if (r <= 0)
            die("read");
        got += r;
    }
    return want;
}

/* token sends a token in operation 102 and returns the server's. */
static const char *token(int xid, const char *out, unsigned outlen, unsigned *inlen) {
    unsigned char *body = malloc(12 + outlen);
    uint32_t n;
    put32(body, xid);
    put32(body + 4, 102);
    put32(body + 8, outlen);
    if (outlen)
        memcpy(body + 12, out, outlen);
    n = call(body, 12 + outlen);
    free(body);
    if (n < 20 || get32(frame + 12) != 0)
        die("the server has refused a token");
    *inlen = get32(frame + 16);
    if ((int32_t)*inlen < 0)
        *inlen = 0;
    return (const char *)frame + 20;
}

int main(int argc, char **argv) {
    struct sockaddr_in addr = {0};
    unsigned char hello[45] = {0}, ask[8];
    sasl_callback_t none[] = {{SASL_CB_LIST_END, NULL, NULL}};
    sasl_security_properties_t layers = {0};
    sasl_conn_t *conn;
    const char *out, *mech, *in;
    unsigned outlen, inlen;
    uint32_t i, count, at;
    int xid = 1, rc;

    if (argc != 5)
        die("usage: cyrus PORT SERVICE HOST MAXLAYER");
    addr.sin_family = AF_INET;
    addr.sin_port = htons(atoi(argv[1]));
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sock = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(sock, (struct sockaddr *)&addr, sizeof addr))
        die("connect");
    put32(hello + 12, 10000);
    put32(hello + 24, 16);
    call(hello, sizeof hello);

    if (sasl_client_init(none) != SASL_OK || sasl_client_new(argv[2], argv[3], NULL, NULL, none, 0, &conn) != SASL_OK)
        die("sasl_client_new");
    layers.max_ssf = atoi(argv[4]);
    layers.maxbufsize = 65536;
    sasl_setprop(conn, SASL_SEC_PROPS, &layers);
    rc = sasl_client_start(conn, "GSSAPI", NULL, &out, &outlen, &mech);
    while (rc == SASL_OK || rc == SASL_CONTINUE) {
        in = token(xid++, out, outlen, &inlen);
        if (rc == SASL_OK)
            break;
        rc = sasl_client_step(conn, in, inlen, NULL, &out, &outlen);
    }
    if (rc != SASL_OK) {
        fprintf(stderr, "cyrus: %s\n", sasl_errdetail(conn));
        return 1;
    }
    printf("state %s\n", mech);
    put32(ask, xid);
    put32(ask + 4, 107);
    if (call(ask, 8) < 20 || get32(frame + 12) != 0)
        die("whoAmI");
    count = get32(frame + 16);
    for (i = 0, at = 20; i < count; i++) {
        uint32_t scheme = at + 4, user = scheme + get32(frame + at) + 4;
        printf("id %.*s:%.*s\n", (int)(user - 4 - scheme), frame + scheme, (int)get32(frame + user - 4), frame + user);
        at = user + get32(frame + user - 4);
    }
    return 0;
}

/*
 * Puts libzookeeper_mt, unchanged, through real work on one server.
 *
 * Usage: client HOST:PORT SUPERPASSWORD
 *
 * (A fourth argument is for the program's own use: see leave.)
 *
 * If COMPAT_TLS has "CA,CERT,KEY,PASSWORD", it connects with TLS. If COMPAT_SASL has a user, it
 * authenticates with DIGEST-MD5 and the password in the file COMPAT_SASL_PASSWORD. Both need the library
 * that install.SecureCClient builds.
 *
 * Prints "version V" once, then "ok NAME" or "FAIL NAME why" for each case. Exits 1 if a case failed.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <zookeeper/zookeeper.h>
#include <zookeeper/zookeeper_version.h>

enum { WAIT_SECONDS = 15, SESSION_MS = 10000, PATH_BYTES = 512 };

static const char *program;
static const char *hosts;
static const char *super_password;

/* A case returns NULL or why it failed; CHECK leaves it with the text, the line and the values. */
typedef const char *(*case_fn)(zhandle_t *zh, const char *root);

static const char *failure(int line, const char *format, ...)
{
	static char text[1024];
	int n = snprintf(text, sizeof text, "line %d: ", line);
	va_list args;
	va_start(args, format);
	vsnprintf(text + n, sizeof text - n, format, args);
	va_end(args);
	return text;
}

#define CHECK(condition) \
	do { if (!(condition)) return failure(__LINE__, "%s", #condition); } while (0)

#define CHECK_RC(call, want) \
	do { int rc_ = (call); if (rc_ != (want)) \
		return failure(__LINE__, "%s: got %d (%s), want %d", #call, rc_, zerror(rc_), (int)(want)); } while (0)

/* at builds root + suffix in one of a few buffers, used in turn. */
static const char *at(const char *root, const char *suffix)
{
	static char buffers[8][PATH_BYTES];
	static int next;
	char *b = buffers[next++ % 8];
	snprintf(b, PATH_BYTES, "%s%s", root, suffix);
	return b;
}

/* The event log: what watchers and completions were told, for waiting. */
struct log {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int connected;  /* how often a session was attached */
	int expired;
	int events;     /* node events */
	int type;       /* of the last node event */
	char path[PATH_BYTES];
	int completed;  /* asynchronous calls that came back */
	int failed;     /* with an error, or out of order */
};

static struct log *new_log(void)
{
	/* Kept until the process ends: a late callback may still write to it. */
	struct log *l = calloc(1, sizeof *l);
	if (l == NULL)
		abort();
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	return l;
}

/* await waits until *counter reaches n; 0 means it did not. */
static int await(struct log *l, const int *counter, int n)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_SECONDS;
	pthread_mutex_lock(&l->lock);
	int rc = 0;
	while (*counter < n && rc == 0)
		rc = pthread_cond_timedwait(&l->changed, &l->lock, &until);
	int reached = *counter >= n;
	pthread_mutex_unlock(&l->lock);
	return reached;
}

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *context)
{
	(void)zh;
	struct log *l = context;
	pthread_mutex_lock(&l->lock);
	if (type != ZOO_SESSION_EVENT) {
		l->events++;
		l->type = type;
		snprintf(l->path, sizeof l->path, "%s", path);
	} else if (state == ZOO_CONNECTED_STATE) {
		l->connected++;
	} else if (state == ZOO_EXPIRED_SESSION_STATE) {
		l->expired++;
	}
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

#ifdef HAVE_OPENSSL_H
/* The library calls this function, which OpenSSL 3 no longer has. */
int FIPS_mode(void) { return 0; }
#endif

static zhandle_t *new_handle(int timeout_ms, const clientid_t *id, struct log *l)
{
#ifdef HAVE_OPENSSL_H
	const char *cert = getenv("COMPAT_TLS"), *user = getenv("COMPAT_SASL");
	if (cert != NULL)
		return zookeeper_init_ssl(hosts, cert, on_event, timeout_ms, id, l, 0);
	if (user != NULL) {
		zoo_sasl_params_t sasl = {"zookeeper", "zk-sasl-md5", "DIGEST-MD5", NULL};
		/* Kept until the process ends, as the handle needs it. */
		sasl.callbacks = zoo_sasl_make_basic_callbacks(user, NULL, getenv("COMPAT_SASL_PASSWORD"));
		return zookeeper_init_sasl(hosts, on_event, timeout_ms, id, l, 0, NULL, &sasl);
	}
#endif
	return zookeeper_init(hosts, on_event, timeout_ms, id, l, 0);
}

/* connect_as returns a connected handle, or NULL; id may be NULL. */
static zhandle_t *connect_as(struct log *l, int timeout_ms, const clientid_t *id)
{
	zhandle_t *zh = new_handle(timeout_ms, id, l);
	if (zh != NULL && !await(l, &l->connected, 1)) {
		zookeeper_close(zh);
		return NULL;
	}
	return zh;
}

static const char *make(zhandle_t *zh, const char *path, const char *data)
{
	CHECK_RC(zoo_create(zh, path, data, (int)strlen(data), &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
	return NULL;
}

#define MAKE(zh, path, data) \
	do { const char *why_ = make(zh, path, data); if (why_ != NULL) return why_; } while (0)

static const char *nodes(zhandle_t *zh, const char *root)
{
	struct Stat stat;
	char buffer[64];
	int n = sizeof buffer;
	MAKE(zh, at(root, "/a"), "one");
	CHECK_RC(zoo_get(zh, at(root, "/a"), 0, buffer, &n, &stat), ZOK);
	CHECK(n == 3 && memcmp(buffer, "one", 3) == 0);
	CHECK(stat.version == 0 && stat.dataLength == 3 && stat.czxid == stat.mzxid && stat.ephemeralOwner == 0);
	CHECK_RC(zoo_set2(zh, at(root, "/a"), "three", 5, 0, &stat), ZOK);
	CHECK(stat.version == 1 && stat.dataLength == 5 && stat.mzxid > stat.czxid);
	CHECK_RC(zoo_exists(zh, at(root, "/a"), 0, &stat), ZOK);
	CHECK(stat.version == 1);
	CHECK_RC(zoo_delete(zh, at(root, "/a"), 1), ZOK);
	CHECK_RC(zoo_exists(zh, at(root, "/a"), 0, &stat), ZNONODE);
	return NULL;
}

static const char *null_data(zhandle_t *zh, const char *root)
{
	char buffer[8];
	int n = sizeof buffer;
	CHECK_RC(zoo_create(zh, at(root, "/null"), NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
	CHECK_RC(zoo_get(zh, at(root, "/null"), 0, buffer, &n, NULL), ZOK);
	CHECK(n == -1);
	MAKE(zh, at(root, "/empty"), "");
	n = sizeof buffer;
	CHECK_RC(zoo_get(zh, at(root, "/empty"), 0, buffer, &n, NULL), ZOK);
	CHECK(n == 0);
	return NULL;
}

static const char *errors(zhandle_t *zh, const char *root)
{
	char path[PATH_BYTES];
	MAKE(zh, at(root, "/a"), "");
	CHECK_RC(zoo_create(zh, at(root, "/a"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNODEEXISTS);
	CHECK_RC(zoo_create(zh, at(root, "/no/a"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNONODE);
	CHECK_RC(zoo_set(zh, at(root, "/a"), "", 0, 7), ZBADVERSION);
	CHECK_RC(zoo_delete(zh, at(root, "/a"), 7), ZBADVERSION);
	CHECK_RC(zoo_delete(zh, at(root, "/none"), -1), ZNONODE);
	CHECK_RC(zoo_delete(zh, root, -1), ZNOTEMPTY);
	CHECK_RC(zoo_create(zh, at(root, "/e"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, path, sizeof path), ZOK);
	CHECK_RC(zoo_create(zh, at(root, "/e/child"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNOCHILDRENFOREPHEMERALS);
	CHECK_RC(zoo_create(zh, at(root, "//bad"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZBADARGUMENTS);
	CHECK_RC(zoo_create(zh, "relative", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZBADARGUMENTS);
	return NULL;
}

static const char *create_modes(zhandle_t *zh, const char *root)
{
	struct Stat stat;
	char path[PATH_BYTES];
	CHECK_RC(zoo_create(zh, at(root, "/s-"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, path, sizeof path), ZOK);
	CHECK(strcmp(path, at(root, "/s-0000000000")) == 0);
	CHECK_RC(zoo_create(zh, at(root, "/es-"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL, path, sizeof path), ZOK);
	CHECK(strcmp(path, at(root, "/es-0000000001")) == 0);
	CHECK_RC(zoo_exists(zh, path, 0, &stat), ZOK);
	CHECK(stat.ephemeralOwner == zoo_client_id(zh)->client_id);
	CHECK_RC(zoo_create2(zh, at(root, "/two"), "12", 2, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path, &stat), ZOK);
	CHECK(stat.dataLength == 2 && stat.version == 0 && strcmp(path, at(root, "/two")) == 0);
	return NULL;
}

/* gone watches path until it is deleted. */
static const char *gone(zhandle_t *zh, const char *path)
{
	struct log *l = new_log();
	int rc = zoo_wexists(zh, path, on_event, l, NULL);
	if (rc == ZNONODE)
		return NULL;
	CHECK_RC(rc, ZOK);
	CHECK(await(l, &l->events, 1));
	CHECK(l->type == ZOO_DELETED_EVENT);
	return NULL;
}

static const char *container(zhandle_t *zh, const char *root)
{
	CHECK_RC(zoo_create(zh, at(root, "/box"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_CONTAINER, NULL, 0), ZOK);
	MAKE(zh, at(root, "/box/child"), "");
	CHECK_RC(zoo_delete(zh, at(root, "/box/child"), -1), ZOK);
	return gone(zh, at(root, "/box"));
}

static const char *ttl(zhandle_t *zh, const char *root)
{
	char path[PATH_BYTES];
	CHECK_RC(zoo_create_ttl(zh, at(root, "/t"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 100, NULL, 0), ZOK);
	CHECK_RC(zoo_create_ttl(zh, at(root, "/ts-"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 100000,
		path, sizeof path), ZOK);
	CHECK(strcmp(path, at(root, "/ts-0000000001")) == 0);
	return gone(zh, at(root, "/t"));
}

static const char *children(zhandle_t *zh, const char *root)
{
	struct String_vector names;
	struct Stat stat;
	MAKE(zh, at(root, "/a"), "");
	MAKE(zh, at(root, "/b"), "");
	CHECK_RC(zoo_get_children(zh, root, 0, &names), ZOK);
	CHECK(names.count == 2);
	deallocate_String_vector(&names);
	CHECK_RC(zoo_get_children2(zh, root, 0, &names, &stat), ZOK);
	CHECK(names.count == 2 && stat.numChildren == 2 && stat.cversion == 2);
	deallocate_String_vector(&names);
	return NULL;
}

static const char *large_data(zhandle_t *zh, const char *root)
{
	enum { BYTES = 900 * 1024 };
	char *out = malloc(BYTES), *in = malloc(BYTES);
	CHECK(out != NULL && in != NULL);
	for (int i = 0; i < BYTES; i++)
		out[i] = (char)(i * 31);
	int n = BYTES;
	CHECK_RC(zoo_create(zh, at(root, "/a"), out, BYTES, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
	CHECK_RC(zoo_get(zh, at(root, "/a"), 0, in, &n, NULL), ZOK);
	CHECK(n == BYTES && memcmp(out, in, BYTES) == 0);
	free(out);
	free(in);
	return NULL;
}

static const char *multi(zhandle_t *zh, const char *root)
{
	zoo_op_t ops[5];
	zoo_op_result_t results[5];
	struct Stat stat;
	char path[PATH_BYTES];
	zoo_create_op_init(&ops[0], at(root, "/a"), "1", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	zoo_set_op_init(&ops[1], at(root, "/a"), "22", 2, 0, &stat);
	zoo_check_op_init(&ops[2], at(root, "/a"), 1);
	zoo_create_op_init(&ops[3], at(root, "/a/s-"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, path, sizeof path);
	zoo_delete_op_init(&ops[4], at(root, "/a/s-0000000000"), -1);
	CHECK_RC(zoo_multi(zh, 5, ops, results), ZOK);
	for (int i = 0; i < 5; i++)
		CHECK_RC(results[i].err, ZOK);
	CHECK(strcmp(path, at(root, "/a/s-0000000000")) == 0 && stat.version == 1);
	return NULL;
}

static const char *multi_rolls_back(zhandle_t *zh, const char *root)
{
	zoo_op_t ops[3];
	zoo_op_result_t results[3];
	zoo_create_op_init(&ops[0], at(root, "/a"), "1", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	zoo_delete_op_init(&ops[1], at(root, "/none"), -1);
	zoo_create_op_init(&ops[2], at(root, "/b"), "1", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	CHECK_RC(zoo_multi(zh, 3, ops, results), ZNONODE);
	CHECK_RC(results[0].err, ZOK);
	CHECK_RC(results[1].err, ZNONODE);
	CHECK_RC(results[2].err, ZRUNTIMEINCONSISTENCY);
	CHECK_RC(zoo_exists(zh, at(root, "/a"), 0, NULL), ZNONODE);
	return NULL;
}

static void on_void(int rc, const void *context)
{
	struct log *l = (struct log *)context;
	pthread_mutex_lock(&l->lock);
	l->completed++;
	if (rc != ZOK)
		l->failed++;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

/* authenticate waits for the server's answer, which zoo_add_auth does not. */
static const char *authenticate(zhandle_t *zh, const char *credential)
{
	struct log *l = new_log();
	CHECK_RC(zoo_add_auth(zh, "digest", credential, (int)strlen(credential), on_void, l), ZOK);
	CHECK(await(l, &l->completed, 1) && l->failed == 0);
	return NULL;
}

static const char *acl(zhandle_t *zh, const char *root)
{
	char buffer[8];
	int n = sizeof buffer;
	struct Stat stat;
	struct ACL_vector got;
	CHECK_RC(zoo_create(zh, at(root, "/auth"), "", 0, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0), ZINVALIDACL);
	struct log *l = new_log();
	zhandle_t *joe = connect_as(l, SESSION_MS, NULL);
	CHECK(joe != NULL);
	const char *why = authenticate(joe, "joe:secret");
	if (why != NULL)
		return why;
	CHECK_RC(zoo_create(joe, at(root, "/mine"), "x", 1, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0), ZOK);
	CHECK_RC(zoo_get(joe, at(root, "/mine"), 0, buffer, &n, NULL), ZOK);
	CHECK_RC(zoo_get_acl(joe, at(root, "/mine"), &got, &stat), ZOK);
	CHECK(got.count == 1 && got.data[0].perms == ZOO_PERM_ALL && strcmp(got.data[0].id.scheme, "digest") == 0);
	CHECK(strncmp(got.data[0].id.id, "joe:", 4) == 0);
	deallocate_ACL_vector(&got);
	CHECK_RC(zoo_get(zh, at(root, "/mine"), 0, buffer, &n, NULL), ZNOAUTH);
	CHECK_RC(zoo_set(zh, at(root, "/mine"), "", 0, -1), ZNOAUTH);
	CHECK_RC(zoo_set_acl(joe, at(root, "/mine"), 5, &ZOO_READ_ACL_UNSAFE), ZBADVERSION);
	CHECK_RC(zoo_set_acl(joe, at(root, "/mine"), 0, &ZOO_READ_ACL_UNSAFE), ZOK);
	n = sizeof buffer;
	CHECK_RC(zoo_get(zh, at(root, "/mine"), 0, buffer, &n, NULL), ZOK);
	CHECK_RC(zoo_set(zh, at(root, "/mine"), "", 0, -1), ZNOAUTH);
	CHECK_RC(zookeeper_close(joe), ZOK);
	return NULL;
}

static const char *superuser(zhandle_t *zh, const char *root)
{
	struct Id nobody = {"digest", "nobody:x"};
	struct ACL entry = {ZOO_PERM_ALL, nobody};
	struct ACL_vector only = {1, &entry};
	char buffer[8], credential[128];
	int n = sizeof buffer;
	CHECK_RC(zoo_create(zh, at(root, "/a"), "", 0, &only, 0, NULL, 0), ZOK);
	CHECK_RC(zoo_get(zh, at(root, "/a"), 0, buffer, &n, NULL), ZNOAUTH);
	snprintf(credential, sizeof credential, "super:%s", super_password);
	const char *why = authenticate(zh, credential);
	if (why != NULL)
		return why;
	CHECK_RC(zoo_get(zh, at(root, "/a"), 0, buffer, &n, NULL), ZOK);
	return NULL;
}

static const char *watches(zhandle_t *zh, const char *root)
{
	struct String_vector names;
	char buffer[8];
	int n = sizeof buffer;
	struct log *exists = new_log(), *data = new_log(), *child = new_log();
	CHECK_RC(zoo_wexists(zh, at(root, "/a"), on_event, exists, NULL), ZNONODE);
	CHECK_RC(zoo_wget_children(zh, root, on_event, child, &names), ZOK);
	deallocate_String_vector(&names);
	MAKE(zh, at(root, "/a"), "");
	CHECK(await(exists, &exists->events, 1) && exists->type == ZOO_CREATED_EVENT && strcmp(exists->path, at(root, "/a")) == 0);
	CHECK(await(child, &child->events, 1) && child->type == ZOO_CHILD_EVENT && strcmp(child->path, root) == 0);
	CHECK_RC(zoo_wget(zh, at(root, "/a"), on_event, data, buffer, &n, NULL), ZOK);
	CHECK_RC(zoo_set(zh, at(root, "/a"), "1", 1, -1), ZOK);
	CHECK(await(data, &data->events, 1) && data->type == ZOO_CHANGED_EVENT);
	n = sizeof buffer;
	CHECK_RC(zoo_wget(zh, at(root, "/a"), on_event, data, buffer, &n, NULL), ZOK);
	CHECK_RC(zoo_delete(zh, at(root, "/a"), -1), ZOK);
	CHECK(await(data, &data->events, 2) && data->type == ZOO_DELETED_EVENT);
	return NULL;
}

static const char *remove_watches(zhandle_t *zh, const char *root)
{
	char buffer[8];
	int n = sizeof buffer;
	struct log *l = new_log();
	CHECK_RC(zoo_wget(zh, root, on_event, l, buffer, &n, NULL), ZOK);
	CHECK_RC(zoo_remove_watches(zh, root, ZWATCHTYPE_DATA, on_event, l, 0), ZOK);
	CHECK_RC(zoo_remove_watches(zh, root, ZWATCHTYPE_DATA, on_event, l, 0), ZNOWATCHER);
	CHECK_RC(zoo_set(zh, root, "1", 1, -1), ZOK);
	/* A second watch is told; had the first one lived, it would have been told before. */
	struct log *second = new_log();
	n = sizeof buffer;
	CHECK_RC(zoo_wget(zh, root, on_event, second, buffer, &n, NULL), ZOK);
	CHECK_RC(zoo_set(zh, root, "2", 1, -1), ZOK);
	CHECK(await(second, &second->events, 1));
	CHECK(l->events == 0 || l->type != ZOO_CHANGED_EVENT);
	return NULL;
}

static void on_string(int rc, const char *value, const void *context)
{
	struct log *l = (struct log *)context;
	pthread_mutex_lock(&l->lock);
	/* Replies come in the order of the requests, so the nth is the nth number. */
	char want[16];
	snprintf(want, sizeof want, "%010d", l->completed);
	if (rc != ZOK || strlen(value) < 10 || strcmp(value + strlen(value) - 10, want) != 0)
		l->failed++;
	l->completed++;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static const char *pipelined_creates(zhandle_t *zh, const char *root)
{
	enum { N = 1000 };
	struct log *l = new_log();
	for (int i = 0; i < N; i++)
		CHECK_RC(zoo_acreate(zh, at(root, "/n-"), "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, on_string, l), ZOK);
	CHECK(await(l, &l->completed, N));
	CHECK(l->failed == 0);
	return NULL;
}

static void on_synced(int rc, const char *value, const void *context)
{
	struct log *l = (struct log *)context;
	pthread_mutex_lock(&l->lock);
	if (rc != ZOK || value == NULL)
		l->failed++;
	l->completed++;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static const char *synchronize(zhandle_t *zh, const char *root)
{
	struct log *l = new_log();
	CHECK_RC(zoo_async(zh, root, on_synced, l), ZOK);
	CHECK(await(l, &l->completed, 1) && l->failed == 0);
	return NULL;
}

/* cut shuts down the handle's TCP connection, found among the open descriptors by its two ends. */
static int cut(zhandle_t *zh)
{
	struct sockaddr_in remote;
	socklen_t n = sizeof remote;
	if (zookeeper_get_connected_host(zh, (struct sockaddr *)&remote, &n) == NULL)
		return 0;
	int found = 0;
	for (int fd = 3; fd < 1024; fd++) {
		struct sockaddr_in peer;
		socklen_t m = sizeof peer;
		if (getpeername(fd, (struct sockaddr *)&peer, &m) == 0 && peer.sin_family == AF_INET && peer.sin_port == remote.sin_port) {
			shutdown(fd, SHUT_RDWR);
			found++;
		}
	}
	return found;
}

static const char *reconnect(zhandle_t *zh, const char *root)
{
	struct log *l = new_log(), *watch = new_log();
	zhandle_t *other = connect_as(l, SESSION_MS, NULL);
	CHECK(other != NULL);
	int64_t session = zoo_client_id(other)->client_id;
	struct Stat stat;
	CHECK_RC(zoo_create(other, at(root, "/e"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0), ZOK);
	CHECK_RC(zoo_wexists(other, at(root, "/later"), on_event, watch, NULL), ZNONODE);
	/* This cuts zh too: both come back. */
	CHECK(cut(other) >= 1);
	CHECK(await(l, &l->connected, 2));
	CHECK(zoo_client_id(other)->client_id == session && l->expired == 0);
	int rc;
	time_t until = time(NULL) + WAIT_SECONDS;
	while ((rc = zoo_exists(zh, at(root, "/e"), 0, &stat)) == ZCONNECTIONLOSS && time(NULL) < until)
		usleep(10000);
	CHECK_RC(rc, ZOK);
	CHECK(stat.ephemeralOwner == session);
	MAKE(zh, at(root, "/later"), "");
	CHECK(await(watch, &watch->events, 1) && watch->type == ZOO_CREATED_EVENT);
	CHECK_RC(zookeeper_close(other), ZOK);
	return NULL;
}

/*
 * leave is another process's part in resume_session: it makes an ephemeral, says whose it is, and ends without a word
 * to the server.
 */
static int leave(const char *path)
{
	zhandle_t *zh = connect_as(new_log(), SESSION_MS, NULL);
	if (zh == NULL || zoo_create(zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0) != ZOK)
		return 1;
	const clientid_t *id = zoo_client_id(zh);
	fwrite(id, sizeof *id, 1, stdout);
	fflush(stdout);
	_exit(0);
}

static const char *resume_session(zhandle_t *zh, const char *root)
{
	char command[2 * PATH_BYTES];
	clientid_t id;
	struct Stat stat;
	snprintf(command, sizeof command, "'%s' '%s' '%s' '%s/e'", program, hosts, super_password, root);
	FILE *f = popen(command, "r");
	CHECK(f != NULL);
	CHECK(fread(&id, sizeof id, 1, f) == 1);
	CHECK(pclose(f) == 0);
	struct log *l = new_log();
	zhandle_t *heir = connect_as(l, SESSION_MS, &id);
	CHECK(heir != NULL);
	CHECK(zoo_client_id(heir)->client_id == id.client_id);
	CHECK_RC(zoo_exists(heir, at(root, "/e"), 0, &stat), ZOK);
	CHECK(stat.ephemeralOwner == id.client_id);
	CHECK_RC(zookeeper_close(heir), ZOK);
	CHECK_RC(zoo_exists(zh, at(root, "/e"), 0, NULL), ZNONODE);
	return NULL;
}

static const char *wrong_password(zhandle_t *zh, const char *root)
{
	(void)root;
	clientid_t id = {0x123456789, "not the password"};
	struct log *l = new_log();
	zhandle_t *other = new_handle(SESSION_MS, &id, l);
	CHECK(other != NULL);
	CHECK(await(l, &l->expired, 1));
	CHECK_RC(zookeeper_close(other), ZOK);
	CHECK(zoo_state(zh) == ZOO_CONNECTED_STATE);
	return NULL;
}

static const char *close_removes_ephemerals(zhandle_t *zh, const char *root)
{
	struct log *l = new_log();
	zhandle_t *other = connect_as(l, SESSION_MS, NULL);
	CHECK(other != NULL);
	CHECK_RC(zoo_create(other, at(root, "/e"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0), ZOK);
	CHECK_RC(zookeeper_close(other), ZOK);
	return gone(zh, at(root, "/e"));
}

static const char *negotiated_timeout(zhandle_t *zh, const char *root)
{
	(void)zh;
	(void)root;
	struct log *l = new_log();
	zhandle_t *other = connect_as(l, 400, NULL); /* less makes attempts to connect too short on a busy machine */
	CHECK(other != NULL);
	CHECK(zoo_recv_timeout(other) == 500); /* minSessionTimeout of the servers here */
	CHECK_RC(zookeeper_close(other), ZOK);
	return NULL;
}

static const char *config_and_reconfig(zhandle_t *zh, const char *root)
{
	char buffer[256], credential[128];
	int n = sizeof buffer;
	struct Stat stat;
	struct log *l = new_log();
	zhandle_t *boss = connect_as(l, SESSION_MS, NULL);
	CHECK(boss != NULL);
	snprintf(credential, sizeof credential, "super:%s", super_password);
	const char *why = authenticate(boss, credential);
	if (why != NULL)
		return why;
	CHECK_RC(zoo_getconfig(boss, 0, buffer, &n, &stat), ZOK);
	n = sizeof buffer;
	CHECK(zoo_reconfig(boss, "server.100=127.0.0.1:1:2;3", NULL, NULL, -1, buffer, &n, &stat) != ZOK);
	CHECK(zoo_state(boss) == ZOO_CONNECTED_STATE);
	CHECK_RC(zookeeper_close(boss), ZOK);
	CHECK_RC(zoo_exists(zh, root, 0, &stat), ZOK);
	return NULL;
}

static const struct {
	const char *name;
	case_fn run;
} cases[] = {
	{"nodes", nodes},
	{"null_data", null_data},
	{"errors", errors},
	{"create_modes", create_modes},
	{"container", container},
	{"ttl", ttl},
	{"children", children},
	{"large_data", large_data},
	{"multi", multi},
	{"multi_rolls_back", multi_rolls_back},
	{"acl", acl},
	{"superuser", superuser},
	{"watches", watches},
	{"remove_watches", remove_watches},
	{"pipelined_creates", pipelined_creates},
	{"synchronize", synchronize},
	{"reconnect", reconnect},
	{"resume_session", resume_session},
	{"wrong_password", wrong_password},
	{"close_removes_ephemerals", close_removes_ephemerals},
	{"negotiated_timeout", negotiated_timeout},
	{"config_and_reconfig", config_and_reconfig},
};

int main(int argc, char **argv)
{
	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: %s HOST:PORT SUPERPASSWORD\n", argv[0]);
		return 2;
	}
	program = argv[0];
	hosts = argv[1];
	super_password = argv[2];
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	signal(SIGPIPE, SIG_IGN); /* OpenSSL does not ask the system to leave it out */
#ifdef HAVE_OPENSSL_H
	if (sasl_client_init(NULL) != SASL_OK) {
		fprintf(stderr, "sasl_client_init failed\n");
		return 1;
	}
#endif
	if (argc == 4)
		return leave(argv[3]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("version %s\n", ZOO_VERSION);
	int failed = 0;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char root[PATH_BYTES];
		snprintf(root, sizeof root, "/c-%s", cases[i].name);
		/* A handle of its own, so that no case meets what another did to its session. */
		zhandle_t *zh = connect_as(new_log(), SESSION_MS, NULL);
		const char *why = zh == NULL ? "cannot connect" : make(zh, root, "");
		if (why == NULL)
			why = cases[i].run(zh, root);
		if (why == NULL) {
			printf("ok %s\n", cases[i].name);
		} else {
			printf("FAIL %s %s\n", cases[i].name, why);
			failed = 1;
		}
		if (zh != NULL)
			zookeeper_close(zh);
	}
	return failed;
}

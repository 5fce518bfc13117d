/* What benches/libzmq.rs does with zeroxide, done with libzmq: the same roles, arguments and lines of output.
 *
 *     libzmq ROLE SIZE SECONDS IO_THREADS SOCKETS [ENDPOINT...]
 *
 * benches/python/native.py builds both programs, starts them against themselves, and compares.
 * With ZEROXIDE_BENCH_TUNED in the environment, sockets read and write 64 KiB at a time, where the library has the
 * draft options for it. ZEROXIDE_BENCH_BIND is the endpoint to bind instead of one of tcp, and ZEROXIDE_BENCH_RATE the
 * limit of multicast transports in kbit/s.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum { MOST_SOCKETS = 8, WARM_UP_US = 150000, RUN = 64, MOST_TRIPS = 4000000 };
enum { IN_BATCH_SIZE = 101, OUT_BATCH_SIZE = 102, TUNED_BATCH = 65536 };

static void *context;
static size_t size;
static double seconds;
static _Atomic long received[MOST_SOCKETS];

static void check(int ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
        exit(1);
    }
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *open_socket(int type) {
    void *socket = zmq_socket(context, type);
    check(socket != NULL, "socket");
    if (getenv("ZEROXIDE_BENCH_TUNED")) {
        int batch = TUNED_BATCH;
        check(!zmq_setsockopt(socket, IN_BATCH_SIZE, &batch, sizeof batch), "no draft options");
        check(!zmq_setsockopt(socket, OUT_BATCH_SIZE, &batch, sizeof batch), "no draft options");
    }
    const char *limit = getenv("ZEROXIDE_BENCH_RATE");
    if (limit) {
        int rate = atoi(limit);
        check(!zmq_setsockopt(socket, ZMQ_RATE, &rate, sizeof rate), "rate");
    }
    return socket;
}

static void *bound(int type) {
    char endpoint[256];
    size_t length = sizeof endpoint;
    const char *wanted = getenv("ZEROXIDE_BENCH_BIND");
    void *socket = open_socket(type);
    check(!zmq_bind(socket, wanted ? wanted : "tcp://127.0.0.1:*"), "bind");
    check(!zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &length), "endpoint");
    printf(" %s", endpoint);
    return socket;
}

static void *connected(int type, const char *endpoint) {
    void *socket = open_socket(type);
    check(!zmq_connect(socket, endpoint), "connect");
    return socket;
}

/* ---- streams ---- */

struct reader {
    void *socket;
    int place;
};

static void *read_on(void *argument) {
    struct reader *reader = argument;
    zmq_msg_t message;
    long count = 0;
    zmq_msg_init(&message);
    for (;;) {
        for (int turn = 0; turn < RUN; turn++)
            check(zmq_msg_recv(&message, reader->socket, 0) >= 0, "recv");
        count += RUN;
        atomic_store_explicit(&received[reader->place], count, memory_order_relaxed);
    }
    return NULL;
}

static void *write_on(void *socket) {
    char *body = calloc(1, size);
    for (;;)
        check(zmq_send(socket, body, size, 0) >= 0, "send");
    return NULL;
}

static long total(int sockets) {
    long sum = 0;
    for (int place = 0; place < sockets; place++)
        sum += atomic_load_explicit(&received[place], memory_order_relaxed);
    return sum;
}

/* Counts what the readers receive between the two lines. */
static void measure(int sockets) {
    while (total(sockets) == 0)
        usleep(1000);
    usleep(WARM_UP_US);
    printf("begin\n");
    long before = total(sockets);
    long long start = now_ns();
    usleep((useconds_t)(seconds * 1e6));
    long messages = total(sockets) - before;
    printf("end %ld %lld\n", messages, now_ns() - start);
}

static void start(void *(*what)(void *), void *argument) {
    pthread_t thread;
    check(!pthread_create(&thread, NULL, what, argument), "thread");
}

static void pull(int sockets) {
    static struct reader readers[MOST_SOCKETS];
    printf("endpoints");
    for (int place = 0; place < sockets; place++)
        readers[place] = (struct reader){bound(ZMQ_PULL), place};
    printf("\n");
    for (int place = 0; place < sockets; place++)
        start(read_on, &readers[place]);
    measure(sockets);
}

static void push(int sockets, char **endpoints) {
    for (int place = 0; place < sockets; place++)
        start(write_on, connected(ZMQ_PUSH, endpoints[place]));
    pause();
}

/* Over a multicast transport, both sides take the group. */
static void sub(void) {
    static struct reader reader;
    const char *group = getenv("ZEROXIDE_BENCH_BIND");
    reader.socket = open_socket(ZMQ_SUB);
    check(!zmq_setsockopt(reader.socket, ZMQ_SUBSCRIBE, "", 0), "subscribe");
    check(!zmq_connect(reader.socket, group), "connect");
    printf("endpoints %s\n", group);
    start(read_on, &reader);
    measure(1);
}

static void pub(void) {
    int wait = 1;
    void *socket = open_socket(ZMQ_PUB);
    check(!zmq_setsockopt(socket, ZMQ_XPUB_NODROP, &wait, sizeof wait), "nodrop");
    check(!zmq_connect(socket, getenv("ZEROXIDE_BENCH_BIND")), "connect");
    start(write_on, socket);
    pause();
}

static void inproc(void) {
    static struct reader reader;
    reader.socket = open_socket(ZMQ_PULL);
    check(!zmq_bind(reader.socket, "inproc://bench"), "bind");
    start(write_on, connected(ZMQ_PUSH, "inproc://bench"));
    start(read_on, &reader);
    measure(1);
}

/* ---- in turns ---- */

static int ascending(const void *one, const void *other) {
    long long difference = *(const long long *)one - *(const long long *)other;
    return (difference > 0) - (difference < 0);
}

static long trips(void *socket, char *body, double limit_s, long limit, long long *times) {
    long count = 0;
    long long before = now_ns(), end = before + (long long)(limit_s * 1e9);
    while (before < end && count < limit) {
        check(zmq_send(socket, body, size, 0) >= 0, "send");
        check(zmq_recv(socket, body, size, 0) >= 0, "recv");
        long long now = now_ns();
        times[count++] = now - before;
        before = now;
    }
    qsort(times, count, sizeof *times, ascending);
    return count;
}

static void say_trips(long count, const long long *times) {
    printf("end %ld %lld %lld %lld\n", count, times[count / 2], times[count * 99 / 100], times[count * 999 / 1000]);
}

static void req(const char *endpoint) {
    void *socket = connected(ZMQ_REQ, endpoint);
    char *body = calloc(1, size);
    long long *times = calloc(MOST_TRIPS, sizeof *times);
    trips(socket, body, WARM_UP_US / 1e6, MOST_TRIPS, times);
    printf("begin\n");
    say_trips(trips(socket, body, seconds, MOST_TRIPS, times), times);
}

/* So many trips, and no more: for counting system calls. */
static void count(const char *endpoint) {
    void *socket = connected(ZMQ_REQ, endpoint);
    char *body = calloc(1, size);
    long long *times = calloc(MOST_TRIPS, sizeof *times);
    trips(socket, body, 1e6, (long)seconds, times);
    zmq_send(socket, "", 0, 0);
    zmq_recv(socket, body, 0, 0);
}

static void *echo(void *socket) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    size_t length;
    do {
        check(zmq_msg_recv(&message, socket, 0) >= 0, "recv");
        length = zmq_msg_size(&message);
        check(zmq_msg_send(&message, socket, 0) >= 0, "send");
    } while (length > 0);
    return NULL;
}

static void rep(void) {
    printf("endpoints");
    void *socket = bound(ZMQ_REP);
    printf("\n");
    echo(socket);
    usleep(50000); /* the last answer leaves */
}

/* ---- beside a giant ---- */

static _Atomic int arrived;

static void *echo_whether_arrived(void *socket) {
    char body[16];
    for (;;) {
        check(zmq_recv(socket, body, sizeof body, 0) >= 0, "recv");
        body[0] = (char)atomic_load(&arrived);
        check(zmq_send(socket, body, 1, 0) >= 0, "send");
    }
    return NULL;
}

static void giant_bind(void) {
    printf("endpoints");
    void *small = bound(ZMQ_REP), *large = bound(ZMQ_PULL);
    printf("\n");
    start(echo_whether_arrived, small);
    zmq_msg_t message;
    zmq_msg_init(&message);
    check(zmq_msg_recv(&message, large, 0) >= 0, "recv");
    atomic_store(&arrived, 1);
    zmq_msg_close(&message);
    pause();
}

static void *send_giant(void *socket) {
    zmq_msg_t message;
    check(!zmq_msg_init_size(&message, size), "memory");
    memset(zmq_msg_data(&message), 7, size);
    check(zmq_msg_send(&message, socket, 0) >= 0, "send");
    return NULL;
}

static void giant_connect(char **endpoints) {
    void *small = connected(ZMQ_REQ, endpoints[0]), *large = connected(ZMQ_PUSH, endpoints[1]);
    long long *times = calloc(MOST_TRIPS, sizeof *times);
    char body[16] = {0};
    size_t giant = size;
    size = 1;
    trips(small, body, WARM_UP_US / 1e6, MOST_TRIPS, times);
    printf("begin\n");
    say_trips(trips(small, body, seconds, MOST_TRIPS, times), times);
    size = giant;
    start(send_giant, large);
    long count = 0;
    long long longest = 0;
    do {
        long long before = now_ns();
        check(zmq_send(small, "x", 1, 0) >= 0, "send");
        check(zmq_recv(small, body, sizeof body, 0) >= 0, "recv");
        times[count] = now_ns() - before;
        if (times[count] > longest)
            longest = times[count];
    } while (body[0] == 0 && ++count < MOST_TRIPS - 1);
    qsort(times, count, sizeof *times, ascending);
    printf("giant %ld %lld %lld %lld\n", count, times[count / 2], times[count * 99 / 100], longest);
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "version")) {
        int major, minor, patch;
        zmq_version(&major, &minor, &patch);
        printf("%d.%d.%d%s\n", major, minor, patch, zmq_has("draft") ? " draft" : "");
        return 0;
    }
    if (argc < 6)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *role = argv[1];
    int sockets = atoi(argv[5]);
    size = strtoul(argv[2], NULL, 10);
    seconds = atof(argv[3]);
    context = zmq_ctx_new();
    zmq_ctx_set(context, ZMQ_IO_THREADS, atoi(argv[4]));
    if (!strcmp(role, "pull"))
        pull(sockets);
    else if (!strcmp(role, "push"))
        push(sockets, argv + 6);
    else if (!strcmp(role, "sub"))
        sub();
    else if (!strcmp(role, "pub"))
        pub();
    else if (!strcmp(role, "inproc"))
        inproc();
    else if (!strcmp(role, "rep"))
        rep();
    else if (!strcmp(role, "req"))
        req(argv[6]);
    else if (!strcmp(role, "count"))
        count(argv[6]);
    else if (!strcmp(role, "giant_bind"))
        giant_bind();
    else if (!strcmp(role, "giant_connect"))
        giant_connect(argv + 6);
    else
        return 2;
    fflush(stdout);
    _exit(0);
}

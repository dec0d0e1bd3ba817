#include "tmkit/no_fork.hpp"

#include <pthread.h>

namespace tmkit {
namespace {

// Of many owners, and of one when a fork begins. Python forks with its interpreter lock held, for which threads wait
// between one NoFork and the next, so that they cannot take turns for ever.
pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

void handle_forks() {
    static const int handlers = pthread_atfork([] { pthread_rwlock_wrlock(&lock); }, [] {
        pthread_rwlock_unlock(&lock);
    }, [] { lock = PTHREAD_RWLOCK_INITIALIZER; });
    static_cast<void>(handlers);
}

}  // namespace

NoFork::NoFork() {
    handle_forks();
    pthread_rwlock_rdlock(&lock);
}

NoFork::~NoFork() { pthread_rwlock_unlock(&lock); }

}  // namespace tmkit

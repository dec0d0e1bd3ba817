// What a fork waits for.
//
// A child process has only the thread that forked. What other threads had half done stays so in it
// for ever: a lock that is held, a value that is being made. So what runs beside Python's own
// threads holds a NoFork while it holds such things, and a fork begins when all of them have ended
// (pthread_atfork). Short work only: a fork waits that long.
#pragma once

#include <pthread.h>

namespace tmkit {

class NoFork {
public:
    NoFork() {
        static const int handlers = pthread_atfork([] { pthread_rwlock_wrlock(&lock); }, [] {
            pthread_rwlock_unlock(&lock);
        }, [] { lock = PTHREAD_RWLOCK_INITIALIZER; });
        static_cast<void>(handlers);
        pthread_rwlock_rdlock(&lock);
    }
    ~NoFork() { pthread_rwlock_unlock(&lock); }
    NoFork(const NoFork&) = delete;
    NoFork& operator=(const NoFork&) = delete;

private:
    // Of many owners, and of one when a fork begins. Python forks with its interpreter lock held,
    // for which threads wait between one NoFork and the next, so that they cannot take turns for
    // ever.
    static inline pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
};

}  // namespace tmkit

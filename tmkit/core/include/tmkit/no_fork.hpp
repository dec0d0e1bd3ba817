// Sections during which the process must not fork.
//
// A child process has only the thread that forked. The unfinished work of other threads stays
// unfinished in it: a held lock, a partly built value. Code that runs beside Python's own threads
// therefore holds a NoFork during such work, and a fork waits until all of them have ended
// (pthread_atfork). Keep the sections short, since a fork waits for them.
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
    // Shared by all sections, exclusive for a fork. Python forks with its interpreter lock held.
    // Threads wait for that lock between two NoForks, so they cannot delay the fork forever.
    static inline pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
};

}  // namespace tmkit

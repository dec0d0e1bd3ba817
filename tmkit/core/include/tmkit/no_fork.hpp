// What a fork waits for.
//
// A child process has only the thread that forked. What other threads had half done stays so in it for ever: a lock
// that is held, a value that is being made. So what runs beside Python's own threads holds a NoFork while it holds such
// things, and a fork begins when all of them have ended (pthread_atfork). Short work only: a fork waits that long.
#pragma once

namespace tmkit {

class NoFork {
public:
    NoFork();
    ~NoFork();
    NoFork(const NoFork&) = delete;
    NoFork& operator=(const NoFork&) = delete;
};

}  // namespace tmkit

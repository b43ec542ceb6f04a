package main

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// apart gives the server's process a CPU and leaves this one the others, until
// together is called. Where both happen to share a CPU, nothing has to wake up another
// one, and a call made by itself takes half the time; a run has calls of either kind,
// in shares that no other run has.
func apart(server int) (together func() error, err error) {
	var all, first unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	if all.Count() < 2 {
		return nil, errors.New("there is one CPU")
	}
	cpu := 0
	for !all.IsSet(cpu) {
		cpu++
	}
	first.Set(cpu)
	others := all
	others.Clear(cpu)
	together = func() error { return errors.Join(move(server, all), move(os.Getpid(), all)) }
	if err := errors.Join(move(server, first), move(os.Getpid(), others)); err != nil {
		return nil, errors.Join(err, together())
	}
	return together, nil
}

// move lets the threads of a process run on these CPUs alone. Those that it starts
// later do as the one that starts them.
func move(process int, to unix.CPUSet) error {
	threads, err := threadsOf(process)
	if err != nil {
		return err
	}
	for _, id := range threads {
		// A thread that has ended meanwhile is none to move.
		if err := unix.SchedSetaffinity(id, &to); err != nil && err != unix.ESRCH {
			return os.NewSyscallError("sched_setaffinity", err)
		}
	}
	return nil
}

// threadsOf returns the ids of a process's threads.
func threadsOf(process int) ([]int, error) {
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(process) + "/task")
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

package main

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// cpusOf returns the CPUs of each thread of a process.
func cpusOf(t *testing.T, process int) (all []unix.CPUSet) {
	t.Helper()
	threads, err := threadsOf(process)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range threads {
		var cpus unix.CPUSet
		if err := unix.SchedGetaffinity(id, &cpus); err == unix.ESRCH {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, cpus)
	}
	return all
}

func TestApart(t *testing.T) {
	server, err := processOf(context.Background(), connectingTo(t))
	if err != nil {
		t.Fatal(err)
	}
	before := cpusOf(t, os.Getpid())[0]
	together, err := apart(server)
	if before.Count() < 2 {
		if err == nil {
			t.Error("apart with one CPU")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	its := cpusOf(t, server)[0]
	for _, mine := range cpusOf(t, os.Getpid()) {
		if its.Count() != 1 || mine.Count() != before.Count()-1 {
			t.Errorf("the server has %d CPUs, a thread %d, of %d", its.Count(), mine.Count(), before.Count())
		}
		for cpu := range 1024 {
			if its.IsSet(cpu) && mine.IsSet(cpu) {
				t.Errorf("both have CPU %d", cpu)
			}
		}
	}
	if err := together(); err != nil {
		t.Fatal(err)
	}
	for _, cpus := range append(cpusOf(t, server), cpusOf(t, os.Getpid())...) {
		if cpus != before {
			t.Errorf("%d CPUs afterwards, %d before", cpus.Count(), before.Count())
		}
	}
}

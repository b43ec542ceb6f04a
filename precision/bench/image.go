package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programOf returns the command line of a server: the redis-server on PATH when it is
// empty, a binary at an absolute path, or that of a container image, whose files go into
// dir.
func programOf(ctx context.Context, server, dir string) ([]string, error) {
	switch {
	case server == "":
		binary, err := exec.LookPath("redis-server")
		return []string{binary}, err
	case filepath.IsAbs(server):
		return []string{server}, nil
	default:
		if err := unpackImage(ctx, server, dir); err != nil {
			return nil, fmt.Errorf("image %s: %w", server, err)
		}
		program, err := programIn(dir)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", server, err)
		}
		return program, nil
	}
}

// unpackImage copies the files of an image, but for devices, into dir.
func unpackImage(ctx context.Context, image, dir string) error {
	created, err := exec.CommandContext(ctx, "docker", "create", image).Output()
	if err != nil {
		return docker(err)
	}
	id := strings.TrimSpace(string(created))
	export := exec.CommandContext(ctx, "docker", "export", id)
	unpack := exec.CommandContext(ctx, "tar", "--extract", "--exclude=dev", "--directory", dir)
	unpack.Stdin, err = export.StdoutPipe()
	if err == nil {
		err = export.Start()
	}
	if err == nil {
		if err = unpack.Run(); err != nil {
			err = fmt.Errorf("tar: %w", err)
			_ = export.Process.Kill() // it has nobody left to write to
			_ = export.Wait()
		} else if err = export.Wait(); err != nil {
			err = docker(err)
		}
	}
	if removed := exec.Command("docker", "rm", id).Run(); err == nil {
		err = removed
	}
	return err
}

// docker adds to an error of docker's what it said.
func docker(err error) error {
	if exit, ok := err.(*exec.ExitError); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("docker: %s", strings.TrimSpace(string(exit.Stderr)))
	}
	return fmt.Errorf("docker: %w", err)
}

// programIn returns the command line of the server in a copied root: by the root's own
// loader and libraries, since those of this machine may be older.
func programIn(root string) ([]string, error) {
	first := func(patterns ...string) string {
		for _, pattern := range patterns {
			if found, _ := filepath.Glob(filepath.Join(root, pattern)); len(found) > 0 {
				return found[0]
			}
		}
		return ""
	}
	binary := first("usr/local/bin/*-server", "usr/bin/redis-server", "usr/bin/valkey-server")
	loader := first("lib/*-linux-gnu*/ld-linux*.so.*")
	if binary == "" || loader == "" {
		return nil, fmt.Errorf("has no redis-server or valkey-server on glibc")
	}
	libraries := filepath.Dir(loader)
	also := filepath.Join(root, "usr/lib", filepath.Base(libraries))
	return []string{loader, "--library-path", libraries + ":" + also, binary}, nil
}

// executable writes a script that becomes the program, and returns its path.
func executable(dir, name string, program []string) (string, error) {
	var quoted []string
	for _, word := range program {
		quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, []byte("#!/bin/sh\nexec "+strings.Join(quoted, " ")+" \"$@\"\n"), 0o755)
}

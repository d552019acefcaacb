package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/pprof"
	"strings"

	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/worker"
)

// job is what a worker process is told to do: the one argument of the command work.
type job struct {
	Side   string `json:"side"`
	Addr   string `json:"addr"`
	Queue  string `json:"queue"`
	Dir    string `json:"dir"`
	Fanout []int  `json:"fanout"`
}

// workers start a worker of a side, which records what it does.
var workers = map[string]func(ctx context.Context, c temporal.Client, j job, r *recorder) (stop func(), err error){
	sideBare: workBare,
	sideOurs: workOurs,
}

// work is a worker process. It works until its standard input ends, which it does
// at the latest with the process that started it.
func work(ctx context.Context, args []string) error {
	var j job
	if len(args) != 1 {
		return errors.New("work is for the program itself")
	}
	if err := json.Unmarshal([]byte(args[0]), &j); err != nil {
		return err
	}
	start, ok := workers[j.Side]
	if !ok {
		return fmt.Errorf("there is no side %q", j.Side)
	}
	sdk.SetBinaryChecksum("bench") // else the SDK hashes the program's file
	r := newRecorder(os.Stdout)
	c, err := dial(j.Addr, r)
	if err != nil {
		return err
	}
	defer c.Close()
	stop, err := start(ctx, c, j, r)
	if err != nil {
		return err
	}
	defer stop()
	r.ready()
	return obey()
}

// dial is how both sides reach the server: silent, and without compression.
func dial(addr string, r *recorder) (temporal.Client, error) {
	o := temporal.Options{HostPort: addr, Logger: silence}
	o.ConnectionOptions.GrpcCompression = &temporal.GrpcCompressionNone{}
	if r != nil {
		o.Interceptors = []interceptor.ClientInterceptor{r}
	}
	return temporal.Dial(o)
}

var silence = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

// obey does what is said over standard input: "profile FILE" begins a CPU profile
// and "done" ends it.
func obey() error {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		path, begin := strings.CutPrefix(in.Text(), "profile ")
		if !begin {
			pprof.StopCPUProfile()
			continue
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
	}
	return in.Err()
}

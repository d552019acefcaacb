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
	"slices"
	"strings"

	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/worker"
)

// job is what a worker process does: the one argument of the command work.
type job struct {
	Work   []string `json:"work"` // the sides that the process has workers for
	Addr   string   `json:"addr"` // if empty, it starts a server of its own, and a run
	Queue  string   `json:"queue"`
	Dir    string   `json:"dir"`
	Fanout []int    `json:"fanout,omitempty"`
	// Cache is how many runs the process caches; zero means the SDK's 10,000.
	Cache int `json:"cache,omitempty"`
}

// queue returns the task queue of a worker.
func (j job) queue(of string) string { return j.Queue + "-" + of }

// workers start a worker, which records what it does.
var workers = map[string]func(ctx context.Context, c temporal.Client, j job, r *recorder) (stop func(), err error){
	sideBare:     workBare(sideBare),
	sideAsking:   workBare(sideAsking),
	sideTrees:    workTrees,
	sideBaseline: workBaseline,
	sideFermata:  workLoop,
	sideFlow:     workFlows,
	sideByHand:   workByHand,
}

// work is a worker process. It works until its standard input ends, which it does at the
// latest with the process that started it.
func work(ctx context.Context, args []string) error {
	var j job
	if len(args) != 1 {
		return errors.New("work is for the program itself")
	}
	if err := json.Unmarshal([]byte(args[0]), &j); err != nil {
		return err
	}
	sdk.SetBinaryChecksum("bench") // otherwise the SDK hashes the program's file
	if j.Cache > 0 {
		sdk.SetStickyWorkflowCacheSize(j.Cache)
	}
	r := newRecorder(os.Stdout)
	if j.Addr == "" {
		return first(ctx, j, r)
	}
	stop, err := employ(ctx, j, r)
	if err != nil {
		return err
	}
	defer stop()
	r.ready()
	return obey(r)
}

// employ starts the job's workers.
func employ(ctx context.Context, j job, r *recorder) (stop func(), err error) {
	c, err := dial(j.Addr, r)
	if err != nil {
		return nil, err
	}
	ends := []func(){c.Close}
	stop = func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
	for _, one := range j.Work {
		start, ok := workers[one]
		if !ok {
			err = fmt.Errorf("there is no worker %q", one)
		} else {
			var end func()
			if end, err = start(ctx, c, j, r); err == nil {
				ends = append(ends, end)
			}
		}
		if err != nil {
			stop()
			return nil, err
		}
	}
	return stop, nil
}

// dial connects like both sides do: without logs and without compression.
func dial(addr string, r *recorder) (temporal.Client, error) {
	o := temporal.Options{HostPort: addr, Logger: silence}
	o.ConnectionOptions.GrpcCompression = &temporal.GrpcCompressionNone{}
	if r != nil {
		o.Interceptors = []interceptor.ClientInterceptor{r}
	}
	return temporal.Dial(o)
}

var silence = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

// obey follows the commands on standard input: "profile FILE" starts a CPU profile and
// "done" ends it; "memory" and "cpu" request what the process holds and has used.
func obey(r *recorder) error {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		switch in.Text() {
		case "memory":
			r.memory()
			continue
		case "cpu":
			r.cpu()
			continue
		}
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

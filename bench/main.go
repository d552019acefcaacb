package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
)

// workCommand is the command with which the program starts worker processes.
const workCommand = "work"

// benchmarks are all benchmarks, in the order of "all".
var benchmarks = []*benchmark{&turnBench, &throughputBench, &costBench, &holdBench, &treeBench, &parkedBench, &startBench, &replayBench, &coldBench, &flowBench, &filesBench}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		return help(out)
	}
	if args[0] == workCommand {
		return work(ctx, args[1:])
	}
	some := benchmarks
	if args[0] != "all" {
		i := slices.IndexFunc(benchmarks, func(b *benchmark) bool { return b.name == args[0] })
		if i < 0 {
			return fmt.Errorf("there is no benchmark %q: see --help", args[0])
		}
		some = benchmarks[i : i+1]
	}
	o := &options{progress: os.Stderr}
	if err := o.parse(args, out); err != nil {
		return err
	}
	r := o.measure(ctx, some)
	return errors.Join(o.show(r, out), r.verdict(o.check), o.foundNone(r))
}

// foundNone returns an error if -only found no cell of any benchmark.
func (o *options) foundNone(r *report) error {
	var cells []string
	for _, res := range r.Results {
		cells = append(cells, res.cells...)
	}
	if o.only == nil || slices.ContainsFunc(cells, o.only.MatchString) {
		return nil
	}
	return fmt.Errorf("-only %q finds no cell; there are %s", o.only, strings.Join(cells, "; "))
}

func help(out io.Writer) error {
	fmt.Fprint(out, `Bench measures a runtime of agents beside plain programs on the same Temporal
server, in turns, and shows every figure with its ratio to theirs.

  go run ./bench BENCHMARK [flags]

`)
	w := tabwriter.NewWriter(out, 2, 0, 2, ' ', 0)
	for _, b := range benchmarks {
		fmt.Fprintf(w, "  %s\t%s\n", b.name, b.about)
	}
	fmt.Fprintf(w, "  all\tevery one of them, one after the other\n")
	fmt.Fprint(w, "\nFor example\n\n")
	for _, b := range benchmarks {
		fmt.Fprintf(w, "  go run ./bench %s %s\n", b.name, b.example)
	}
	fmt.Fprint(w, "  go run ./bench all -quick -check -json figures.json\n")
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, "\nFlags, the same for all:\n\n")
	f := (&options{}).flags("")
	f.SetOutput(out)
	f.PrintDefaults()
	return nil
}

// options are the flags.
type options struct {
	reps          int
	quick, check  bool
	json          string
	data, profile string
	waits         string
	only          *regexp.Regexp // nil means every cell
	progress      io.Writer
}

func (o *options) flags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.IntVar(&o.reps, "reps", 0, "repetitions of every cell (default what the benchmark needs)")
	f.BoolVar(&o.quick, "quick", false, "a small variant: all of them take about a minute, and tell whether they work")
	f.BoolVar(&o.check, "check", false, "exit with 1 where a bar is missed")
	f.StringVar(&o.json, "json", "", "write every sample to this `FILE`; - is standard output, instead of the tables")
	f.StringVar(&o.data, "data", "", "keep the server's database and the store in this `FOLDER` (default: in memory)")
	f.StringVar(&o.profile, "profile", "", "write CPU profiles of the worker processes, and of the server, into this `FOLDER`")
	f.StringVar(&o.waits, "waits", "", "write every wait of a tree above 200 ms, as its histories have it, to this `FILE` (tree)")
	f.Func("only", "measure the cells whose name this `REGEXP` finds", func(s string) (err error) {
		o.only, err = regexp.Compile(s)
		return err
	})
	return f
}

func (o *options) parse(args []string, out io.Writer) error {
	f := o.flags(args[0])
	f.SetOutput(out)
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is not a flag: see --help", f.Arg(0))
	}
	if o.reps < 0 {
		return fmt.Errorf("-reps %d: it must be positive", o.reps)
	}
	return nil
}

// show writes the report to where the flags say.
func (o *options) show(r *report, out io.Writer) error {
	if o.json == "-" {
		return r.encode(out)
	}
	if o.json != "" {
		f, err := os.Create(o.json)
		if err != nil {
			return err
		}
		if err := errors.Join(r.encode(f), f.Close()); err != nil {
			return err
		}
	}
	return r.print(out)
}

// measure runs benchmarks. One that fails does not keep the others from running; the
// report says why.
func (o *options) measure(ctx context.Context, some []*benchmark) *report {
	r := newReport()
	for _, b := range some {
		usual := b.reps
		if o.quick {
			usual = min(usual, 2)
		}
		res := r.begin(b.name)
		err := b.run(ctx, &bench{options: o, result: res, reps: cmp.Or(o.reps, usual)})
		res.finish(err)
		if ctx.Err() != nil {
			break
		}
	}
	return r
}

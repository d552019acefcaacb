package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/examples/review"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := work(ctx); err != nil {
		log.Fatal(err)
	}
}

func work(ctx context.Context) error {
	c, err := temporal.DialContext(ctx, temporal.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	o := review.Options(merge)
	if o.Store, err = store.OpenDir("transcripts", nil); err != nil {
		return err
	}
	o.Models = map[string]model.Model{"anthropic": anthropic.New(nil)}
	w, err := worker.New(c, o)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// merge stands for your service.
func merge(_ context.Context, number int, key string) error {
	log.Printf("change %d is merged (%s)", number, key)
	return nil
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
	"github.com/fermata-agents/fermata/provider/bedrock"
	"github.com/fermata-agents/fermata/provider/gemini"
	"github.com/fermata-agents/fermata/provider/openai"
)

// Measures of a request with files.
const (
	requestTime  = "a request"
	requestAlloc = "allocated for a request"
	requestBody  = "the body"
)

// adapter is one whose requests are measured, and its model.
type adapter struct {
	name, model string
	at          func(base string) model.Model
}

var adapters = []adapter{
	{"anthropic", "claude-sonnet-5-5", func(base string) model.Model {
		return anthropic.New(&anthropic.Options{APIKey: "k", BaseURL: base})
	}},
	{"openai, Responses", "gpt-5.4", func(base string) model.Model {
		return openai.New(&openai.Options{APIKey: "k", BaseURL: base + "/v1", Own: true, API: openai.Responses})
	}},
	{"openai, Chat Completions", "gpt-5.4", func(base string) model.Model {
		return openai.New(&openai.Options{APIKey: "k", BaseURL: base + "/v1", Own: true, API: openai.ChatCompletions})
	}},
	{"gemini", "gemini-3.8-flash", func(base string) model.Model {
		return gemini.New(&gemini.Options{APIKey: "k", BaseURL: base})
	}},
	{"bedrock", "global.anthropic.claude-sonnet-5-5", func(base string) model.Model {
		return bedrock.New(&bedrock.Options{APIKey: "k", BaseURL: base, Region: "eu-central-1"})
	}},
}

// requestsWithFiles measures what each adapter does with as many images as a request has at most.
func requestsWithFiles(ctx context.Context, b *bench) error {
	const images = 11 // of 12 MB
	var body atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body) // a request that breaks off has a shorter body
		body.Store(n)
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()
	req := &model.Request{Files: map[string][]byte{}, Messages: []agent.Message{{Role: agent.RoleUser}}}
	for n := range images {
		data := chart(n)
		sum := sha256.Sum256(data)
		f := &agent.File{Session: "s", Digest: hex.EncodeToString(sum[:]), Size: len(data), MediaType: "image/png"}
		req.Files[f.Digest] = data
		req.Messages[0].Parts = append(req.Messages[0].Parts, agent.Part{Type: agent.PartFile, File: f})
	}
	for _, a := range adapters {
		cell := fmt.Sprintf("%d images of 1 MB, %s", images, a.name)
		if !b.wants(cell) {
			continue
		}
		m, one := a.at(server.URL), *req
		one.Model = a.model
		t, err := b.compare(ctx, cell, side{a.name, func(ctx context.Context, _ int) (sample, error) {
			s, err := asksOnce(ctx, m, &one)
			if err == nil {
				s[requestBody] = float64(body.Load())
			}
			return s, err
		}})
		if err != nil {
			return err
		}
		b.add(row{Cell: cell, What: requestTime, Unit: "ms", Ours: t.of(a.name, requestTime)})
		b.add(row{Cell: cell, What: requestAlloc, Unit: "bytes", Ours: t.of(a.name, requestAlloc), Beside: t.of(a.name, requestBody), Reference: requestBody, Target: atMost(1.5)})
	}
	return nil
}

// asksOnce measures a request that the server refuses.
func asksOnce(ctx context.Context, m model.Model, req *model.Request) (sample, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	_, err := m.Generate(ctx, req, func(model.Delta) {})
	took := since(began)
	runtime.ReadMemStats(&after)
	var refused *agent.Error
	if !errors.As(err, &refused) || refused.Provider == nil || refused.Provider.HTTP != http.StatusBadRequest {
		return nil, fmt.Errorf("the request was not refused: %w", err)
	}
	return sample{requestTime: took, requestAlloc: float64(after.TotalAlloc - before.TotalAlloc)}, nil
}

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

const cardNumber = "4111-1111-planted"

// vault is a worker with approval keys whose every word is kept.
type vault struct {
	*stage
	signer signals.Signer
	said   *bytes.Buffer
	cards  chan string
}

func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{signer: newSigner("k1"), said: &bytes.Buffer{}, cards: make(chan string, 4)}
	words := zapcore.Lock(zapcore.AddSync(v.said))
	logger := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), words, zap.DebugLevel))
	s := shared(t)
	c, err := s.Dial(t.Context(), connection(slog.NewJSONHandler(words, &slog.HandlerOptions{Level: slog.LevelDebug})))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	dir := stored(t, t.TempDir())
	v.stage = &stage{temporal: c, addr: s.Addr(), queue: t.Name(), dir: dir}
	v.Client = client.New(c, &client.Options{TaskQueue: v.queue, Store: dir})
	pay := tool.New("pay", "pays", func(_ context.Context, _ *tool.Call, in struct{ Card string }) (string, error) {
		v.cards <- in.Card
		return "", fmt.Errorf("the bank is closed")
	}, &tool.Options{Secrets: []string{"Card"}})
	w, err := worker.New(c, &worker.Options{
		TaskQueue: v.queue, Store: dir, Logger: logger, Tools: []tool.Tool{pay}, ApprovalKeys: v.signer.Keys(),
		Models: map[string]model.Model{"script": testsuite.NewScript(
			testsuite.Reply{Calls: call("pay", map[string]any{"Card": cardNumber})}, testsuite.Reply{Text: "done"})},
		Agents: []agent.Definition{{Name: "tester", Model: "script", Tools: []string{"pay"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Approvers: []string{"ana"}}}}},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	return v
}

// An approver proves to be one with a token, once and for one request. Neither the
// token nor a secret argument is found where people look.
func TestTokensAndSecrets(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	run := v.begin(t, "go", nil)
	q := v.suspended(t, run).Requests[0]
	require.JSONEq(t, `{"Card":"[secret]"}`, string(q.Call.Arguments))
	mint := func(approver, request string, until time.Duration) string {
		token, err := v.signer.Mint(signals.Claim{
			Session: run.Session, Execution: run.ID, Verb: agent.VerbApprove, Request: request, Digest: q.Digest, Principal: approver, Expires: time.Now().Add(until),
		})
		require.NoError(t, err)
		return token
	}
	good := mint("ana", q.ID, time.Hour)
	var errs []error
	for _, c := range []struct {
		token string
		code  agent.Code
	}{
		{"", agent.CodeDenied}, {good + "x", agent.CodeBadSignature}, {mint("ana", "q-9", time.Hour), agent.CodeBadSignature},
		{mint("bo", q.ID, time.Hour), agent.CodeDenied}, {mint("ana", q.ID, -time.Second), agent.CodeExpired},
	} {
		_, err := v.Approve(t.Context(), q, &client.ApproveOptions{By: "ana", Token: c.token})
		require.ErrorIs(t, err, c.code)
		errs = append(errs, err)
	}
	order := agent.CommandHeader{Token: good}
	for name, c := range map[string]agent.Command{
		"other arguments":    agent.ApproveCommand{CommandHeader: order, Request: q.ID, Digest: "0000000000000000"},
		"edited arguments":   agent.ApproveCommand{CommandHeader: order, Request: q.ID, Digest: q.Digest, Arguments: json.RawMessage(`{"Card":"0"}`)},
		"all further calls":  agent.ApproveCommand{CommandHeader: order, Request: q.ID, Digest: q.Digest, Always: true},
		"another verb":       agent.RejectCommand{CommandHeader: order, Request: q.ID, Reason: "no"},
		"in another's place": agent.AnswersCommand{Answers: []agent.AnswerTo{{Request: q.ID, Reject: &agent.RejectCommand{CommandHeader: order, Request: q.ID, Reason: "no"}}}},
	} {
		_, err := signals.Update(t.Context(), v.temporal, run.Session, c)
		require.ErrorIs(t, err, agent.CodeBadSignature, name)
	}
	require.NotContains(t, v.whole(t, run), good, "a token that is not spent is in no history")

	st, err := run.Status(t.Context())
	require.NoError(t, err)
	_, err = v.Approve(t.Context(), q, &client.ApproveOptions{By: "somebody", Token: good})
	require.NoError(t, err)
	require.Equal(t, cardNumber, <-v.cards, "the tool gets what the model wrote")
	require.Equal(t, agent.StatusCompleted, v.rest(t, run).Status)
	_, err = v.Approve(t.Context(), q, &client.ApproveOptions{Token: good})
	require.ErrorIs(t, err, agent.CodeClosed)

	d, err := v.temporal.DescribeWorkflowExecution(t.Context(), run.Session, "")
	require.NoError(t, err)
	seen, err := json.Marshal(st)
	require.NoError(t, err)
	for where, text := range map[string]string{"memo and search attributes": d.String(), "status": string(seen), "errors": fmt.Sprint(errs), "logs": v.said.String()} {
		for _, secret := range []string{cardNumber, good, strings.Split(good, ".")[5]} {
			require.NotContains(t, text, secret, where)
		}
	}
}

// whole is a run's history as text.
func (v *vault) whole(t *testing.T, run *client.Run) (text string) {
	t.Helper()
	for _, e := range v.history(t, run.Session, run.ID) {
		text += e.String()
	}
	return text
}

package e2e

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdktemporal "go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/agents"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// sample is a codec like that of Temporal's samples: it has the same encoding and metadata, and
// leaves what it has not encrypted. Its nonce is fixed, as a test may have it.
type sample struct{}

func (sample) seal() cipher.AEAD {
	block, _ := aes.NewCipher([]byte("test-key-test-key-test-key-test!"))
	sealed, _ := cipher.NewGCM(block)
	return sealed
}

func (s sample) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, err
		}
		out[i] = &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte("binary/encrypted"), "encryption-key-id": []byte("test")}, Data: s.seal().Seal(nil, make([]byte, 12), plain, nil)}
	}
	return out, nil
}

func (s sample) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if out[i] = p; string(p.Metadata[converter.MetadataEncoding]) != "binary/encrypted" {
			continue
		}
		plain, err := s.seal().Open(nil, make([]byte, 12), p.Data, nil)
		if err != nil {
			return nil, err
		}
		out[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(plain, out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// codecs are those of these tests.
var codecs = map[string]converter.PayloadCodec{
	"sample": sample{},
	"zlib":   converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}),
}

// byConverter gives a client a codec as its data converter; byConnection to its connection.
func byConverter(o *temporal.Options, c converter.PayloadCodec) {
	o.DataConverter = converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)
}

func byConnection(o *temporal.Options, c converter.PayloadCodec) {
	*o = temporal.Options{Logger: o.Logger}
	if err := client.Prepare(o, &client.PrepareOptions{Keyring: ring(), Codecs: []converter.PayloadCodec{c}}); err != nil {
		panic(err)
	}
}

func byNothing(*temporal.Options, converter.PayloadCodec) {}

// dialWith makes a client that has a codec.
func dialWith(t *testing.T, c converter.PayloadCodec, by func(*temporal.Options, converter.PayloadCodec)) temporal.Client {
	t.Helper()
	o := connection(slog.DiscardHandler)
	by(&o, c)
	dialled, err := shared(t).Dial(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(dialled.Close)
	return dialled
}

// allVerbs is all that the runs of these tests hear, in this order.
var allVerbs = []agent.Command{
	agent.PauseCommand{Reason: "lunch"}, agent.ResumeCommand{}, agent.AnswerCommand{Request: "q-1", Text: "blue"},
	agent.InterruptCommand{Reason: "now"}, agent.ResumeCommand{}, agent.StopCommand{Reason: "enough"},
}

// picks is a workflow that sends its run each of allVerbs when the test says so.
func picks(ctx workflow.Context, o errand) (string, error) {
	r := agents.Start[string](ctx, "lead", "pick", o.options())
	verbs := workflow.GetSignalChannel(ctx, "do")
	for _, c := range allVerbs {
		verbs.Receive(ctx, nil)
		if err := r.Send(ctx, c); err != nil {
			return "", err
		}
	}
	out, err := r.Outcome(ctx)
	if err != nil {
		return "", err
	}
	return string(out.Status) + ": " + out.Handoff.Summary, nil
}

// greets is a workflow that only waits for its run.
func greets(ctx workflow.Context, o errand) (string, error) {
	return agents.Execute[string](ctx, "scout", "look", o.options())
}

// codecStage is a stage whose client and worker have a codec in one way, and the user's own
// worker in another.
func codecStage(t *testing.T, c converter.PayloadCodec, ours, theirs func(*temporal.Options, converter.PayloadCodec), working chan<- string) (*ownStage, temporal.Client) {
	t.Helper()
	s := on(t, shared(t))
	s.temporal = dialWith(t, c, ours)
	s.Client = client.New(s.temporal, &client.Options{TaskQueue: s.queue, Store: s.dir})
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case strings.Contains(last.Text(), "You are being stopped"):
			return saysText(`{"summary":"it was asked twice"}`)
		case strings.Contains(r.Messages[0].Text(), "look"):
			return saysText("seen")
		case replies(r) == 0:
			return callsTool("subagent__scout", `{"task":"look"}`)
		case replies(r) == 2:
			return callsTool("block", `{}`)
		}
		return callsTool("ask_user", `{"question":"Which?"}`)
	})
	h := &ownStage{stage: s, options: &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Models: map[string]model.Model{"script": m}, Tools: []tool.Tool{block(working)},
		Agents: []agent.Definition{{Name: "lead", Model: "script", Tools: []string{"block", agent.AskUserTool}, Agents: []agent.SubAgent{{Agent: "scout"}}}, {Name: "scout", Model: "script"}},
	}}
	s.open(t, h.options)
	own := dialWith(t, c, theirs)
	w := sdk.New(own, h.queueOfOwn(), sdk.Options{})
	w.RegisterWorkflow(picks)
	w.RegisterWorkflow(greets)
	w.RegisterWorkflow(loses)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return h, own
}

// hears says allVerbs to a run, and sees what each does.
func (h *ownStage) hears(t *testing.T, run *client.Run, working <-chan string, say func(agent.Command)) {
	t.Helper()
	h.is(t, run, agent.SuspensionInputRequired)
	say(allVerbs[0])
	h.until(t, run, agent.EventHoldAdded)
	say(allVerbs[1])
	h.until(t, run, agent.EventHoldRemoved)
	say(allVerbs[2])
	<-working
	say(allVerbs[3])
	h.is(t, run, agent.SuspensionHeld)
	say(allVerbs[4])
	h.is(t, run, agent.SuspensionInputRequired)
	say(allVerbs[5])
}

// is waits until a run is suspended in a way.
func (h *ownStage) is(t *testing.T, run *client.Run, kind agent.SuspensionKind) {
	t.Helper()
	require.Eventually(t, func() bool {
		s, err := run.Status(t.Context())
		return err == nil && s.Status == agent.StatusSuspended && s.Suspension.Kind == kind
	}, patience, 10*time.Millisecond)
}

// A house's codec is shared by its own worker and by Fermata's. Every verb reaches the run, and
// so do the reports of a sub-agent: as signals and as updates, and from somebody without the
// codec, where it lets plain payloads through.
func TestAWorkflowRunsAgentsUnderACodec(t *testing.T) {
	t.Parallel()
	for name, c := range codecs {
		for way, ours := range map[string]func(*temporal.Options, converter.PayloadCodec){"converter": byConverter, "connection": byConnection} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				working := make(chan string, 1)
				h, own := codecStage(t, c, ours, byConverter, working)
				session := "pick-" + uuid.NewString()
				waiting, err := own.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{TaskQueue: h.queueOfOwn()}, picks, errand{Queue: h.queue, Session: session})
				require.NoError(t, err)
				h.hears(t, h.started(t, session), working, func(agent.Command) {
					require.NoError(t, own.SignalWorkflow(t.Context(), waiting.GetID(), "", "do", nil))
				})
				var text string
				require.NoError(t, waiting.Get(t.Context(), &text))
				require.Equal(t, "stopped: it was asked twice", text)

				without := dial(t, shared(t))
				for _, say := range []func(*client.Run, agent.Command){
					func(run *client.Run, c agent.Command) { h.say(t, run, c) },
					func(run *client.Run, c agent.Command) {
						require.NoError(t, without.SignalWorkflow(t.Context(), run.Session, "", string(c.Verb()), c))
					},
				} {
					run, err := h.Start(t.Context(), "lead", "pick", nil)
					require.NoError(t, err)
					h.hears(t, run, working, func(c agent.Command) { say(run, c) })
					require.Equal(t, "it was asked twice", h.rest(t, run).Handoff.Summary)
				}
			})
		}
	}
}

// If only one of the two workers has the codec, the workflow fails and says so.
func TestAWorkflowFailsIfOneWorkerLacksTheCodec(t *testing.T) {
	t.Parallel()
	type has = func(*temporal.Options, converter.PayloadCodec)
	for name, c := range codecs {
		for who, x := range map[string]struct {
			ours, theirs has
			says         string
		}{
			"ours":   {byNothing, byConverter, "which this worker can't decode"},
			"theirs": {byConverter, byNothing, "encoding is not supported"},
			"linked": {byConnection, byNothing, "encoding is not supported"},
		} {
			t.Run(name+" "+who, func(t *testing.T) {
				t.Parallel()
				h, own := codecStage(t, c, x.ours, x.theirs, nil)
				waiting, err := own.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{TaskQueue: h.queueOfOwn()}, greets, errand{Queue: h.queue, Session: uuid.NewString()})
				require.NoError(t, err)
				require.ErrorContains(t, waiting.Get(t.Context(), nil), x.says)
			})
		}
	}
}

// Listings and preflight read what no data converter sees. With the codec in the connection they
// read all of it.
func TestListingsUnderACodecOfTheConnection(t *testing.T) {
	t.Parallel()
	h, _ := codecStage(t, codecs["sample"], byConnection, byConverter, nil)
	run, err := h.Start(t.Context(), "lead", "pick", nil)
	require.NoError(t, err)
	h.is(t, run, agent.SuspensionInputRequired)
	require.Eventually(t, func() bool {
		for item, err := range h.Inbox(t.Context(), &client.InboxOptions{Session: run.Session}) {
			return err == nil && item.Text == "Which?"
		}
		return false
	}, patience, 20*time.Millisecond)
	seen := 0
	for v, err := range worker.Preflight(t.Context(), h.temporal, h.options, nil) {
		require.NoError(t, err)
		require.NoError(t, v.Err())
		seen++
	}
	require.Equal(t, 1, seen)
}

// An agent's failure keeps its code over a connection's codec, which also encodes the failure's
// details. A failure converter with the codec reads those.
func TestAFailureUnderACodec(t *testing.T) {
	t.Parallel()
	c := codecs["sample"]
	detailed := func(o *temporal.Options, c converter.PayloadCodec) {
		byConverter(o, c)
		o.FailureConverter = sdktemporal.NewDefaultFailureConverter(sdktemporal.DefaultFailureConverterOptions{DataConverter: o.DataConverter})
	}
	for name, theirs := range map[string]func(*temporal.Options, converter.PayloadCodec){"plain": byConverter, "detailed": detailed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, own := codecStage(t, c, byConnection, theirs, nil)
			waiting, err := own.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{TaskQueue: h.queueOfOwn()}, loses, errand{Queue: h.queue, Session: uuid.NewString()})
			require.NoError(t, err)
			var session string
			require.NoError(t, waiting.Get(t.Context(), &session))
			require.Equal(t, name == "detailed", session == "nobody", session)
		})
	}
}

// loses is a workflow that runs an agent which does not exist. It returns the agent that the
// outcome names.
func loses(ctx workflow.Context, o errand) (string, error) {
	r := agents.Start[string](ctx, "nobody", "look", o.options())
	if _, err := r.Result(ctx); !errors.Is(err, agent.CodeUnknownAgent) {
		return "", err
	}
	out, err := r.Outcome(ctx)
	return out.Agent, err
}

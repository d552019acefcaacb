package gemini_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/gemini"
)

var whole = stream(chunk(text("Hello")), chunk(signed(calls("", "weather", `{"city":"Rome"}`), "b2xk")), because("STOP"))

func TestNoKey(t *testing.T) {
	for _, name := range []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"} {
		t.Setenv(name, "")
	}
	for _, o := range []*gemini.Options{nil, {Name: "google"}} {
		_, err := gemini.New(o).Generate(t.Context(), ask("Hello"), silent)
		var fault *agent.Error
		require.ErrorAs(t, err, &fault)
		require.Equal(t, agent.FaultAuth, fault.Provider.Kind)
		require.Contains(t, fault.Message, "set GEMINI_API_KEY or GOOGLE_API_KEY")
	}
}

func TestEnvironment(t *testing.T) {
	_, s := serve(t, standin.Drip(whole, 0))
	t.Setenv("GOOGLE_GEMINI_BASE_URL", s.URL+"/")
	t.Setenv("GEMINI_API_KEY", "")
	t.Setenv("GOOGLE_API_KEY", " "+key+"\n")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true") // only what the options name is read
	standin.Reply(t, gemini.New(nil), ask("Hello"))
	t.Setenv("GEMINI_API_KEY", "own")
	m := gemini.New(nil)
	t.Setenv("GEMINI_API_KEY", "later")
	standin.Reply(t, m, ask("Hello"))
	require.Equal(t, key, s.Heads[0].Get("x-goog-api-key"))
	require.Equal(t, "own", s.Heads[1].Get("x-goog-api-key"), "the name that is Gemini's own comes first")
	require.Equal(t, "/v1beta/models/gemini-3.8-flash:streamGenerateContent", s.Paths[0])
}

func TestTunedModel(t *testing.T) {
	m, s := serve(t, standin.Drip(whole, 0))
	req := ask("Hello")
	req.Model = "tunedModels/mine"
	standin.Reply(t, m, req)
	require.Equal(t, "/v1beta/tunedModels/mine:streamGenerateContent", s.Paths[0])
}

// Nothing that is printed by accident has the key.
func TestKeyIsNotShown(t *testing.T) {
	o := gemini.Options{APIKey: key, BaseURL: "https://me:pass-word@gateway.example"}
	m := gemini.New(&o)
	standin.Hides(t, key, "pass-word", o, &o, m, *m)
}

func TestReach(t *testing.T) {
	standin.Unreachable(t, at, ask("Hello"), "GOOGLE_GEMINI_BASE_URL")
	standin.ClientTimeout(t, at, ask("Hello"), key)
	standin.Redirect(t, at, ask("Hello"), key)
	standin.WrongURLs(t, at, ask("Hello"))
}

func TestInfo(t *testing.T) {
	standin.SaneTable(t, gemini.Table())
	m := gemini.New(nil)
	require.Equal(t, model.Info{
		Price:  agent.Price{Input: 2 * agent.Dollar, Output: 12 * agent.Dollar, CacheRead: agent.Dollar / 5, CacheWrite: 2 * agent.Dollar},
		Window: 1_048_576, MaxOutput: 65_536, Reasoning: []agent.Reasoning{agent.ReasoningLow, agent.ReasoningMedium, agent.ReasoningHigh}, Files: gemini.Table().Files, ResultFiles: gemini.Table().ResultFiles,
	}, m.Info("gemini-3.1-pro-preview"))
	require.Equal(t, model.Info{}, m.Info("gemini-of-tomorrow"))
	// A price that Google has said will change is not known when it has.
	offer := gemini.Table()
	require.NotZero(t, offer.Info("gemini-4-argon", time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), model.PriceTerms{}).Price)
	require.Zero(t, offer.Info("gemini-4-argon", time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), model.PriceTerms{}).Price)
}

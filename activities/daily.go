package activities

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// DailyBudget is this process's part of a task queue's daily limits. A model call begins
// only while some of the part is left, and is charged at its end. So a limit is exceeded
// by at most one reply for each call in progress. A nil DailyBudget has no limit. It is
// safe for concurrent use.
type DailyBudget struct {
	Limits agent.DailyLimits
	Queue  string // for messages
	// Logger logs once a day that a limit is used up; it may be nil.
	Logger *slog.Logger
	// Claim sends a claim to the task queue's account.
	Claim func(context.Context, wire.DailyClaim) (wire.DailyGrant, error)

	once    sync.Once
	turns   chan struct{}    // a lock: its holder may claim
	pending *wire.DailyClaim // the claim whose answer has not come
	failed  failedClaim      // the last claim that failed; like pending, only for the holder of turns

	mu          sync.Mutex
	asked       string      // the day of the last claim, by this process's clock
	day         string      // the day of the part, by the account's clock
	over        usedUpLimit // the account's last answer
	logged      usedUpLimit // what was logged last
	left        agent.DailyLimits
	calls       int         // in progress
	returnTimer *time.Timer // returns what is left; nil before the first call
}

// failedClaim is why and when a claim failed. Calls that waited for their turn meanwhile
// need not claim again.
type failedClaim struct {
	err error
	at  time.Time
}

// usedUpLimit is a limit that was used up on a day, as of a time.
type usedUpLimit struct {
	code agent.Code
	day  string
	at   time.Time
}

const (
	// claimTimeout limits one claim. A call that waits longer is repeated later.
	claimTimeout = 10 * time.Second
	// returnAfter is how long an idle process keeps its part; others may need it.
	returnAfter = time.Minute
	// believedFor is how long a process trusts the answer that a limit is used up.
	// Thousands of calls may wait, and the account is one workflow.
	believedFor = time.Minute
	// maxDailyWait is how long a call waits before it asks whether the limit was raised.
	maxDailyWait = 15 * time.Minute
)

// errDaily marks a call that was refused for a daily limit. It does not count as an
// attempt.
var errDaily = errors.New("daily limit")

// begin lets a call begin. The error is [agent.CodeLimitTokens] or [agent.CodeLimitCost]
// if the day's limit is used up. It says when to try again.
func (d *DailyBudget) begin(ctx context.Context) error {
	// The fast path: most calls find something left, and need not wait for a turn.
	if d == nil || d.begins(time.Now().UTC()) {
		return nil
	}
	// Before the wait, to tell which failed claims happened during it.
	came := time.Now()
	if !d.takeTurn(ctx) {
		return notAsked(ctx.Err())
	}
	defer d.recordTurnEnd()
	for {
		now := time.Now().UTC()
		if d.begins(now) {
			return nil
		}
		if code := d.usedUpAt(now); code != "" {
			return d.usedUp(now, code)
		}
		if d.failed.err != nil && d.failed.at.After(came) { // the claim failed while this call waited
			return notAsked(d.failed.err)
		}
		if err := d.ask(ctx, now); err != nil {
			return notAsked(err)
		}
	}
}

// ask claims another part.
func (d *DailyBudget) ask(ctx context.Context, now time.Time) error {
	within, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	err := d.claim(within, now, false)
	if ctx.Err() == nil { // otherwise this call was cancelled, which says nothing about the account
		d.failed = failedClaim{err, time.Now()}
	}
	return err
}

func notAsked(err error) error {
	return &agent.Error{Code: agent.CodeUnreachable, Message: "asking for a part of the daily limits: " + err.Error(), Retryable: true, RetryAfter: time.Minute, Err: errDaily}
}

// takeTurn waits until no other goroutine claims. It reports whether it got the turn
// before the context ended.
func (d *DailyBudget) takeTurn(ctx context.Context) bool {
	d.once.Do(func() { d.turns = make(chan struct{}, 1) })
	select {
	case d.turns <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *DailyBudget) recordTurnEnd() { <-d.turns }

// usedUpAt returns the limit that is known to be used up; empty if none is, or if that
// should be asked again.
func (d *DailyBudget) usedUpAt(now time.Time) agent.Code {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over.day != now.Format(time.DateOnly) || now.Sub(d.over.at) > believedFor {
		return ""
	}
	return d.over.code
}

// begins counts a call if some of the part is left for it.
func (d *DailyBudget) begins(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked < now.Format(time.DateOnly) || !d.suffices() {
		return false
	}
	d.calls++
	// The part is in use again: it must not be returned now.
	if d.returnTimer != nil {
		d.returnTimer.Stop()
	}
	return true
}

func (d *DailyBudget) suffices() bool {
	return (d.Limits.Tokens == 0 || d.left.Tokens > 0) && (d.Limits.CostUSD == 0 || d.left.CostUSD > 0)
}

// claim asks for a new part and returns what is left of the last one. A claim without an
// answer is repeated unchanged and with the same id: the account may have granted it.
func (d *DailyBudget) claim(ctx context.Context, now time.Time, closing bool) error {
	if d.pending == nil {
		d.mu.Lock()
		d.pending = &wire.DailyClaim{ID: rand.Text(), Limits: d.Limits, Day: d.day, Remaining: d.left, Closing: closing}
		d.mu.Unlock()
	}
	c := *d.pending
	grant, err := d.Claim(ctx, c)
	if err == nil || errors.Is(err, agent.CodeInvalidInput) { // refused before anything changed
		d.pending = nil
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// Calls may have used some of the part while the claim was under way. So the
	// difference is added.
	d.left.Tokens += grant.Granted.Tokens - c.Remaining.Tokens
	d.left.CostUSD += grant.Granted.CostUSD - c.Remaining.CostUSD
	// The account's clock may differ. The part is valid for this process's day.
	d.day, d.asked = grant.Day, now.Format(time.DateOnly)
	d.over = usedUpLimit{grant.UsedUp, d.asked, now}
	d.tell()
	return nil
}

// tell logs a used-up limit, once a day for each.
func (d *DailyBudget) tell() {
	if d.over.code == "" || d.Logger == nil || d.over.code == d.logged.code && d.over.day == d.logged.day {
		return
	}
	d.logged = d.over
	d.Logger.Warn("a daily limit is used up: model calls wait until the new day begins, or somebody raises the limit",
		"task_queue", d.Queue, "limit", d.limit(d.over.code), "code", string(d.over.code), "begins", midnightAfter(d.over.at))
}

// end ends a call with what it has used.
func (d *DailyBudget) end(used agent.DailyLimits) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left.Tokens -= used.Tokens
	d.left.CostUSD -= used.CostUSD
	if d.calls--; d.calls > 0 {
		return
	}
	if d.returnTimer != nil {
		d.returnTimer.Stop()
	}
	d.returnTimer = time.AfterFunc(returnAfter, func() {
		ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
		defer cancel()
		d.GiveBack(ctx)
	})
}

// GiveBack returns what is left, if no call is in progress. If that fails, the next claim
// returns it; without one it is lost for the day. Call it when the process shuts down.
func (d *DailyBudget) GiveBack(ctx context.Context) {
	if d == nil || !d.takeTurn(ctx) {
		return
	}
	defer d.recordTurnEnd()
	// A loop: a pending claim is repeated first, and grants something more to return.
	for d.hasToGive() {
		if err := d.claim(ctx, time.Now().UTC(), true); err != nil {
			return
		}
	}
}

func (d *DailyBudget) hasToGive() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls == 0 && (d.pending != nil || d.left != agent.DailyLimits{})
}

// usedUp returns the refusal of a call, until the day ends or the limit may have been
// raised.
func (d *DailyBudget) usedUp(now time.Time, code agent.Code) error {
	// The wait is longer than delayFrom, so that the run shows it.
	return &agent.Error{
		Code: code, Retryable: true, RetryAfter: max(min(midnightAfter(now).Sub(now), maxDailyWait), delayFrom+time.Second), Err: errDaily,
		Message: fmt.Sprintf("the daily limit of the task queue %s (%s) is used up; it starts again at zero at midnight UTC", d.Queue, d.limit(code)),
	}
}

// limit describes the limit of a code for people.
func (d *DailyBudget) limit(code agent.Code) string {
	if code == agent.CodeLimitCost {
		return d.Limits.CostUSD.String() + " USD"
	}
	return fmt.Sprintf("%d tokens", d.Limits.Tokens)
}

// midnightAfter returns the end of a time's day, in UTC.
func midnightAfter(t time.Time) time.Time {
	return t.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
}

package agent

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// TextName names a text of the runtime that a model reads. [Definition.Texts] replaces texts by
// their names.
type TextName string

// The texts, by what they are for. [Texts] has each with its words.
const (
	TextLoopContractText     TextName = "loop_contract_text"
	TextLoopContractTool     TextName = "loop_contract_tool"
	TextLoopContractSentinel TextName = "loop_contract_sentinel"
	TextNudge                TextName = "nudge"
	TextNudgeSentinel        TextName = "nudge_sentinel"
	TextRequireAction        TextName = "require_action"
	TextMaxProse             TextName = "max_prose"
	TextMaxProseWithCalls    TextName = "max_prose_with_calls"
	TextTextCallRejected     TextName = "text_call_rejected"
	TextRepair               TextName = "repair"
	TextRetry                TextName = "retry"
	TextRepeatedCall         TextName = "repeated_call"
	TextRecovery             TextName = "recovery"
	TextRecoveryRefusal      TextName = "recovery_refusal"
	TextRecoveryOutput       TextName = "recovery_bad_output"
	TextRecoveryAsked        TextName = "recovery_asked"
	TextLessons              TextName = "lessons"
	TextReminders            TextName = "reminders"
	TextWorktree             TextName = "worktree"
	TextOwnDirectory         TextName = "own_directory"
	TextPauseTurn            TextName = "pause_turn"
	TextResumeNote           TextName = "resume_note"
	TextToolHidden           TextName = "tool_hidden"
	TextNoToolFound          TextName = "no_tool_found"
	TextSummaryAll           TextName = "summary_all"
	TextSummaryOlder         TextName = "summary_older"
	TextSummaryHandoff       TextName = "summary_handoff"
	TextSummaryFinal         TextName = "summary_final"
	TextLeftOut              TextName = "left_out"
	TextAskUser              TextName = "tool_ask_user"
	TextAwaitResumption      TextName = "tool_await_resumption"
	TextFinish               TextName = "tool_finish"
	TextFinishDaemon         TextName = "tool_finish_daemon"
	TextShowFile             TextName = "tool_show_file"
	TextToolSearch           TextName = "tool_tool_search"
	TextWaitForUser          TextName = "tool_wait_for_user"
	TextReportProgress       TextName = "tool_report_progress"
)

// TextInfo describes a text of the runtime.
type TextInfo struct {
	// Name is the name by which [Definition.Texts] replaces the text.
	Name TextName
	// Use says what the text does, as what follows "It" in a sentence.
	Use string
	// Words is the text that the model reads if the agent does not replace it. A name in
	// braces, such as {fault}, stands for a value of the moment.
	Words string
	// Max is how long another text may be, in bytes.
	Max int
}

// placeholder is a name in braces.
var placeholder = regexp.MustCompile(`\{([a-z_]+)\}`)

// Values returns the names of the values that the text may have in braces, in the order of its
// words.
func (t TextInfo) Values() (names []string) {
	for _, found := range placeholder.FindAllStringSubmatch(t.Words, -1) {
		if !slices.Contains(names, found[1]) {
			names = append(names, found[1])
		}
	}
	return names
}

// foreign returns a placeholder of a text that the runtime does not fill; empty if there is none.
func (t TextInfo) foreign(text string) string {
	for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(t.Values(), found[1]) {
			return found[0]
		}
	}
	return ""
}

// known says which placeholders the text may have.
func (t TextInfo) known() string {
	if len(t.Values()) == 0 {
		return "this text has no values"
	}
	return "this text has {" + strings.Join(t.Values(), "}, {") + "}"
}

// NoText leaves out a loop contract, the text about a workspace, or the note after a resume, as the
// value of its name in [Definition.Texts].
const NoText = "-"

// optionalTexts are those that NoText leaves out.
var optionalTexts = []TextName{TextLoopContractText, TextLoopContractTool, TextLoopContractSentinel, TextWorktree, TextOwnDirectory, TextResumeNote}

// Limits of texts that replace the runtime's, in bytes: of one, of one that is added to a
// call's result, and of all together.
const (
	maxText      = 4 << 10
	maxShortText = 512
	maxTexts     = 32 << 10
)

// texts is the one table of the texts that instruct a model. Results of calls that say a fact,
// such as "Tool not found", are beside what finds the fact (decision 0054). No text decides
// anything: a test or a replay never depends on its words.
var texts = []TextInfo{
	{TextLoopContractText, "ends the instructions of an agent with tools, where a text is the answer", "Keep working until the task is done: a reply without a tool call ends your work. Write it when the task is done, or when you can't go on without an answer.", maxText},
	{TextLoopContractTool, "ends the instructions, under completion: tool", "Keep working until the task is done: a text does not end your work, and nobody answers it. When the task is done, call the tool finish.", maxText},
	{TextLoopContractSentinel, "ends the instructions, with done_sentinel", "Keep working until the task is done: a text does not end your work, and nobody answers it. When the task is done, write your answer and end it with {sentinel}", maxText},
	{TextNudge, "answers a reply without a call, under completion: tool", "You have not called a tool. Go on with the task; when it is done, call the tool finish.", maxText},
	{TextNudgeSentinel, "answers a reply that has neither a call nor the sentinel, with done_sentinel", "Your work is not over. Go on with the task; when it is done, end your answer with {sentinel}", maxText},
	{TextRequireAction, "answers a reply without a call, with turn_policy.require_action", "Your reply has no tool call, and each of your replies needs one. Call a tool.", maxText},
	{TextMaxProse, "answers a longer reply without a call, with turn_policy.max_prose_chars", "Your text has {chars} characters; at most {max} are taken. Say it again in fewer.", maxText},
	{TextMaxProseWithCalls, "follows the results of calls beside a longer text, with turn_policy.max_prose_chars", "The text beside your calls had {chars} characters. Write at most {max}.", maxShortText},
	{TextTextCallRejected, "is the result of a call that was written as text and is not made, with text_calls", "Not executed: the call was written as text. Make it as a tool call.", maxShortText},
	{TextRepair, "answers an answer that does not fit the output's schema. The schema follows", "Your answer does not fit the schema of the output: {fault}\nAnswer again with JSON that fits it, and with nothing else.", maxText},
	{TextRetry, "answers a reply that was empty or cut off", "Your last reply could not be used: {fault}. Answer again, more briefly where you can.", maxText},
	{TextRepeatedCall, "is added to the result of the third equal call", "You have made this same call {times} times. Its result will not change: do something else.", maxShortText},
	{TextRecovery, "answers a failure that the agent's recovery corrects", "That did not work: {fault}. Take a smaller step, or another way.", maxText},
	{TextRecoveryRefusal, "answers a refusal that the agent's recovery corrects", "You did not answer. Do the part of the task that you can do, in smaller steps, and say what you leave out.", maxText},
	{TextRecoveryOutput, "answers an answer that does not fit the output's schema, if the agent's recovery corrects it. The schema follows", "Your answer does not fit the schema of the output. Answer again with JSON that fits it, and with nothing else.", maxText},
	{TextRecoveryAsked, "follows a failure about which a person was asked", "Somebody was asked what to do about this: {fault}. Go on.", maxText},
	{TextLessons, "begins the list of what has failed, with lessons", "What has failed so far, the newest last. Do not repeat it:", maxText},
	{TextReminders, "begins the list of the reminders, at the end of each request", "Reminders, which hold for all of your work:", maxText},
	{TextWorktree, "ends the instructions of a sub-agent that works in a git worktree of its own", "You work in a git worktree of your own: a copy of the files of the agent that gave you the task, as they were when you began. " +
		"Nobody else sees your changes yet. When the task is done, they are {at_end}. The history of the repository is not there, and you need not commit.", maxText},
	{TextOwnDirectory, "ends the instructions of a sub-agent that works in a directory of its own", "You work in a directory of your own, which was empty when you began. Nobody else sees your files yet. When the task is done, they are {at_end}.", maxText},
	{TextPauseTurn, "answers a reply that the provider has paused", "Go on.", maxText},
	{TextResumeNote, "ends the first request after a suspension", "You were suspended at turn {turn}{reason} and continue at {time}. {cause}{input}", maxText},
	{TextToolHidden, "is the result of a call of a hidden tool, with tool_search or tool_narrowing", "Not executed: {tool} is not among the tools that you are offered now. Find it with tool_search, and call it after that.", maxShortText},
	{TextNoToolFound, "is the result of tool_search if no tool fits", "No tool fits. {count} tools are hidden; try other words.", maxShortText},
	{TextSummaryAll, "asks for the summary from which a resumed run continues", "Sum up this conversation for yourself: what the task is, what was done and found, what is decided, what is still to do, " +
		"what images and documents show, and every name, number and path that you need to go on. Your summary will replace the conversation. Answer with the summary alone.", maxText},
	{TextSummaryOlder, "asks for the summary that replaces the older part of a long conversation", "Sum up this conversation so far: it has become too long, and your summary will replace all but its newest messages. " +
		"Keep what the task is, what was done and found, what is decided, what is still to do, what images and documents show, and every name, number and path that may be needed. Answer with the summary alone.", maxText},
	{TextSummaryHandoff, "asks for the summary of a stopped run. The answer's schema stays", handoffPrompt, maxText},
	{TextSummaryFinal, "asks for the last reply of a run whose limit is reached, with the action finalize", "Your limit is reached: this is your last reply, and you have no tools any more. Give the answer to your task now, with what you have. Say what is missing.", maxText},
	{TextLeftOut, "replaces the older part of a conversation that has no summary", "[The older part of the conversation is left out here, since it is too long for the model's window.]", maxText},
	{TextAskUser, "describes the tool ask_user", "Ask the user a question that only they can answer. You are suspended until the answer comes. The answer is the result of this call. Other calls of the same turn are not made.", maxText},
	{TextAwaitResumption, "describes the tool await_resumption", "Suspend yourself until a condition is met: a time, an event, or the first of several. Without conditions you wait until somebody resumes you. Other calls of the same turn are not made.", maxText},
	{TextFinish, "describes the tool finish", "Call this once, when the task is done. It ends your work.", maxText},
	{TextFinishDaemon, "describes the tool finish of a daemon", "Call this when you are done with the last message or event. Then you wait for the next one.", maxText},
	{TextShowFile, "describes the tool show_file", "Shows you a file of this conversation again, if only its name is left here.", maxText},
	{TextToolSearch, "describes the tool tool_search", "Finds tools that you are not offered yet, by words of their names and descriptions. You can call what it finds from your next turn on.", maxText},
	{TextWaitForUser, "describes the tool wait_for_user", "Hand over to the user without a question. You are suspended until their next message, which follows the result of this call. Other calls of the same turn are not made.", maxText},
	{TextReportProgress, "describes the tool report_progress", "Tell the people who follow your work how far you are. It does nothing else. Use it when a part of your work begins or is done. Your report replaces the one before.", maxText},
}

// handoffPrompt asks for the summary of a stopped run (package handoff).
const handoffPrompt = `You are being stopped. This is your last message of this run, and you have no tools any more: nothing that you begin now will happen. Somebody else, a person or another agent, will carry on from here and knows only what you write down now.

Sum up your work for them. Answer with one JSON object that fits the given schema, and with nothing before or after it. Its field "summary" is required: say what was asked of you, how far you got, what you learned, and what you would do next. Its other fields are "done", "in_flight", "not_started" and "failed" (lists of {"what", "ref"}), "open_questions" and "decisions" (lists of texts), "evidence" (a list of {"kind", "ref", "note"}, where "kind" is "file", "url" or "call") and "confidence" (from 0 to 1). Leave out what you have nothing to say on.

Be honest about what is unfinished. Only what you saw succeed is done. What you began and did not see end is in flight, even if it probably worked. Name what failed, and do not guess: where you do not know, say so.`

// Texts returns the texts of the runtime that a definition can replace.
func Texts() []TextInfo { return slices.Clone(texts) }

// Text returns a text as the agent's model reads it, with values in the places that have their
// names: {fault} for "fault". values are names and values in turn.
func (d *Definition) Text(name TextName, values ...string) string {
	text, own := d.Texts[name]
	if i := slices.IndexFunc(texts, func(t TextInfo) bool { return t.Name == name }); !own && i >= 0 {
		text = texts[i].Words
	}
	if len(values) == 0 {
		return text
	}
	var pairs []string
	for i := 0; i+1 < len(values); i += 2 {
		pairs = append(pairs, "{"+values[i]+"}", values[i+1])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// checkOwnTexts refuses a text whose name the runtime does not have, and one that is too long.
func (d Definition) checkOwnTexts() error {
	size := 0
	if strings.TrimSpace(d.Nudge) == NoText {
		return d.noDash("nudge")
	}
	for _, name := range slices.Sorted(maps.Keys(d.Texts)) {
		path, text := "texts."+string(name), d.Texts[name]
		i := slices.IndexFunc(texts, func(t TextInfo) bool { return t.Name == name })
		size += len(text)
		switch {
		case i < 0:
			return Errorf(CodeInvalidInput, "agent %s: %s: the runtime has no text of this name; it has %s", d.Name, path, textNames()).WithPath(path)
		case len(text) > texts[i].Max:
			return Errorf(CodeInvalidInput, "agent %s: %s has %d bytes, and may have %d", d.Name, path, len(text), texts[i].Max).WithPath(path)
		case texts[i].foreign(text) != "":
			return Errorf(CodeInvalidInput, "agent %s: %s names %s, which stands for no value; %s", d.Name, path, texts[i].foreign(text), texts[i].known()).WithPath(path)
		case strings.TrimSpace(text) == NoText && !(text == NoText && slices.Contains(optionalTexts, name)):
			return d.noDash(path)
		case strings.TrimSpace(text) == "":
			return Errorf(CodeInvalidInput, "agent %s: %s is empty; write a text, or leave it out", d.Name, path).WithPath(path)
		}
	}
	if size > maxTexts {
		return Errorf(CodeInvalidInput, "agent %s: texts have %d bytes together, and may have %d", d.Name, size, maxTexts).WithPath("texts")
	}
	return nil
}

// noDash returns the error of a text that is only a dash, and can't be left out by one.
func (d Definition) noDash(path string) error {
	return Errorf(CodeInvalidInput, "agent %s: %s can't be left out, and the model would read a dash; write a text, or leave the key out for the runtime's own", d.Name, path).WithPath(path)
}

func textNames() string {
	var names []string
	for _, t := range texts {
		names = append(names, string(t.Name))
	}
	return strings.Join(names, ", ")
}

package agent

// AnonymousPrincipal is whose memory a session uses that was started without a name: see [MemoryTool].
// A start that gives this name is refused with [CodeInvalidInput].
const AnonymousPrincipal = "anonymous"

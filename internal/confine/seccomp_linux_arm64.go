package confine

var (
	olderModeCalls []modeCall
	olderOpenCalls []openCall
)

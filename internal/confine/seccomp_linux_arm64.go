package confine

var (
	olderModers  []moder
	olderOpeners []opener
)

package message

func newNewsFeed() *NewsFeed {
	r := newProse(2)
	id := func() int64 { return 1 + r.Int64N(1<<60) }
	time := func() int64 { return 1_700_000_000 + r.Int64N(100_000_000) }
	var f NewsFeed
	for range 23 {
		p := &Profile{ID: id(), Name: r.phrase(2), Bio: r.sentences(2)}
		for range 10 {
			post := &Post{ID: id(), Time: time(), Text: r.sentences(2 + r.IntN(4))}
			for range r.IntN(25) {
				post.Reactions = append(post.Reactions, Like+Reaction(r.Int32N(int32(Rage))))
			}
			for range r.IntN(8) {
				post.Comments = append(post.Comments, &Comment{Author: id(), Time: time(), Text: r.sentences(1 + r.IntN(3))})
			}
			p.Posts = append(p.Posts, post)
		}
		f.Profiles = append(f.Profiles, p)
	}
	return &f
}

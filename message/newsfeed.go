package message

// NewsFeed is profiles with posts with reactions and comments: large, and mixed as what a web service answers is mixed.
// It goes through lists of lists, through a list of enums, which protobuf packs, and through numbers as long as ids and
// times are.
type NewsFeed struct {
	Profiles []*Profile `json:"profiles,omitempty" xml:"profiles,omitempty" msgpack:"profiles,omitempty"`
}

// Profile is somebody who posts.
type Profile struct {
	ID    int64   `json:"id,omitempty" xml:"id,omitempty" msgpack:"id,omitempty"`
	Name  string  `json:"name,omitempty" xml:"name,omitempty" msgpack:"name,omitempty"`
	Bio   string  `json:"bio,omitempty" xml:"bio,omitempty" msgpack:"bio,omitempty"`
	Posts []*Post `json:"posts,omitempty" xml:"posts,omitempty" msgpack:"posts,omitempty"`
}

// Post is what somebody posts.
type Post struct {
	ID        int64      `json:"id,omitempty" xml:"id,omitempty" msgpack:"id,omitempty"`
	Time      int64      `json:"time,omitempty" xml:"time,omitempty" msgpack:"time,omitempty"` // Unix seconds
	Text      string     `json:"text,omitempty" xml:"text,omitempty" msgpack:"text,omitempty"`
	Reactions []Reaction `json:"reactions,omitempty" xml:"reactions,omitempty" msgpack:"reactions,omitempty"`
	Comments  []*Comment `json:"comments,omitempty" xml:"comments,omitempty" msgpack:"comments,omitempty"`
}

// Comment is what somebody answers.
type Comment struct {
	Author int64  `json:"author,omitempty" xml:"author,omitempty" msgpack:"author,omitempty"` // id of a profile
	Time   int64  `json:"time,omitempty" xml:"time,omitempty" msgpack:"time,omitempty"`       // Unix seconds
	Text   string `json:"text,omitempty" xml:"text,omitempty" msgpack:"text,omitempty"`
}

// Reaction is an enum, which is a number in every format but protobuf's JSON.
type Reaction int32

// What one can react with. Zero is none of them.
const (
	Like Reaction = iota + 1
	Love
	Laugh
	Wonder
	Cry
	Rage
)

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

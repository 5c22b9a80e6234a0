package timing

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever a child or a file says, it is no record or one that can be compared, if only to an error.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"arms":["a","b"],"length":1,"seed":2,"blocks":[[[0,1,2,3,4,5,6,7],[1,1,2,3,4]]]}`, `{"arms":["a","b"],"blocks":[[[0,1,2]]]}`,
		`{"arms":["a","b"],"blocks":[[[],[]]]}`, `{"arms":["a","b"],"blocks":[null]}`, `{"blocks":[[{}]]}`, `{"blocks":[[[1.5]]]}`,
		`{"arms":["a","b"],"blocks":[[[0,9223372036854775807,1,0,0],[0,1,9223372036854775807,0,0]]]}`,
		`{"arms":["a","b"],"blocks":[[[0,1,1],[0,1,1]],[[0,1,1],[0,1,1]],[[0,1,1],[0,1,1]],[[0,1,1],[0,1,1]],[[0,1,1],[0,1,1]],[[0,1,1],[0,2,1]]]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r Record
		if json.Unmarshal(data, &r) != nil {
			return
		}
		if ratio, err := r.Ratio(1, 0); err == nil {
			require.Positive(t, ratio)
			require.Positive(t, r.NsPerOp(0))
		}
		written, err := json.Marshal(r)
		require.NoError(t, err)
		var again Record
		require.NoError(t, json.Unmarshal(written, &again))
		require.Equal(t, r, again)
	})
}

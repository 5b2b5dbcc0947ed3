package election_test

import (
	"testing"

	"github.com/gozkd/gozkd/recipes/internal/recipetest"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

package agree_test

import (
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

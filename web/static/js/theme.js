// Sets the theme before the first paint. It is a classic script for that reason: a module runs later.
(function () {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  function choose() {
    let theme = null;
    try {
      theme = JSON.parse(localStorage.getItem('gozkd.theme'));
    } catch (e) {
      // Storage can be forbidden; the system's preference then decides.
    }
    document.documentElement.dataset.theme = theme || (dark.matches ? 'dark' : 'light');
  }
  dark.addEventListener('change', choose);
  choose();
})();

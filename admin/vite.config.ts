import { defineConfig } from 'vite';

/** The admin page. Paths in it are relative, so that a proxy may serve it below a prefix. */
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  publicDir: false,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist/admin-page',
    emptyOutDir: true,
    target: ['chrome123', 'firefox120', 'safari17.5'],
    modulePreload: { polyfill: false },
    // The content security policy of the page allows no data: URLs.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});

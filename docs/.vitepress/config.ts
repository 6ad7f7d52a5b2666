import { dirname, posix } from 'node:path';
import { renderMermaidSVG } from 'beautiful-mermaid';
import { defineConfig, type MarkdownRenderer } from 'vitepress';
import { sidebar } from './sidebar.ts';
import { siteLink } from './source-pages.ts';

const home = {
  layout: 'home',
  hero: {
    name: 'Refold',
    text: 'Change your API while it serves',
    tagline: 'Versioned read models over an event log in PostgreSQL, served as live GraphQL.',
    actions: [
      { text: 'Start in five minutes', link: '/five-minutes' },
      { theme: 'alt', text: 'Tutorial', link: '/tutorial' },
      { theme: 'alt', text: 'Production checklist', link: '/production' },
    ],
  },
};

export default defineConfig({
  title: 'Refold',
  description: 'An event log in PostgreSQL becomes a live GraphQL API.',
  // The page is plain Markdown, because people read it in the repository, too.
  transformPageData: ({ relativePath, frontmatter }) => {
    if (relativePath === 'index.md') Object.assign(frontmatter, home);
  },
  // Pages name the addresses of the reader's own machine.
  ignoreDeadLinks: 'localhostLinks',
  // The index of the search is one file.
  vite: { build: { chunkSizeWarningLimit: 4000 } },
  markdown: {
    // As GitHub does it, so that one link is right in both places.
    anchor: {
      slugify: (heading) =>
        heading
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\s_-]/gu, '')
          .trim()
          .replace(/\s/g, '-'),
    },
    languageAlias: { jsonl: 'json' },
    config(md) {
      drawDiagrams(md);
      linkSources(md);
    },
  },
  themeConfig: {
    sidebar,
    outline: [2, 3],
    search: {
      provider: 'local',
      // Files of the repository would hide the pages that explain them.
      options: { _render: (src, env, md) => (env.relativePath.startsWith('source/') ? '' : md.render(src, env)) },
    },
  },
});

/** Diagrams are drawn when the site is built: readers load pictures and no program. */
function drawDiagrams(md: MarkdownRenderer): void {
  const fence = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const token = tokens[index];
    if (token?.info !== 'mermaid') return fence?.(tokens, index, ...rest) ?? '';
    const colors = { bg: 'var(--vp-c-bg)', fg: 'var(--vp-c-text-1)', transparent: true };
    // Its style sheet would fetch a font.
    const picture = renderMermaidSVG(token.content, colors).replace(/@import url\([^)]*\);/, '');
    // Vue leaves style elements out of its templates, but not out of HTML that it is given.
    return `<div class="diagram" v-html="${md.utils.escapeHtml(JSON.stringify(picture))}"></div>`;
  };
}

/** Links to files that are no pages lead to the pages that show them. */
function linkSources(md: MarkdownRenderer): void {
  md.core.ruler.push('link_sources', ({ tokens, env }) => {
    const folder = posix.join('docs', dirname(env.relativePath ?? ''));
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null;
      if (href === null || /^[a-z]+:|^[/#]/.test(href)) continue;
      const [target = '', anchor] = href.split('#');
      const place = siteLink(folder, target);
      if (place !== undefined) token.attrSet('href', anchor === undefined ? place : `${place}#${anchor}`);
    }
  });
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DefaultTheme } from 'vitepress';

const index = readFileSync(join(import.meta.dirname, '../index.md'), 'utf8');

/** The groups and pages of index.md, which lists them once for both. */
export const sidebar: DefaultTheme.SidebarItem[] = index
  .split(/^## /m)
  .slice(1)
  .map((section) => ({
    text: section.slice(0, section.indexOf('\n')),
    collapsed: false,
    items: [...section.matchAll(/^\| \[([^\]]+)\]\(([^)]+)\.md\)/gm)].map(([, text = '', page]) => ({
      text,
      link: `/${page}`,
    })),
  }));

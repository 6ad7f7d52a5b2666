import { existsSync, globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, posix, relative, resolve } from 'node:path';

/** A page of the site that shows a file of the repository which is not a page itself, or a folder by its README. */
export interface SourcePage {
  readonly params: { readonly path: string };
  readonly content: string;
}

const docs = resolve(import.meta.dirname, '..');
const repository = resolve(docs, '..');
const languages: Readonly<Record<string, string>> = {
  '.ts': 'ts',
  '.sql': 'sql',
  '.json': 'json',
  '.yaml': 'yaml',
  '.graphql': 'graphql',
};
const link = /\]\((?!https?:|#|\/)([^)#\s]+)(#[^)\s]*)?\)/g;

/** The pages for every file that a page links to, unless it is a page of docs/, and for the files of linked folders. */
export function sourcePages(): readonly SourcePage[] {
  const found = new Set<string>();
  for (const page of globSync('**/*.md', { cwd: docs })) collect(join('docs', page), found);
  return [...found].map((path) => ({ params: { path: urlPath(path) }, content: contentOf(path) }));
}

/** Adds what a page links to, and what the pages among these link to. */
function collect(page: string, found: Set<string>): void {
  for (const [, target = ''] of readFileSync(join(repository, page), 'utf8').matchAll(link)) {
    const path = pathOf(dirname(page), target);
    if (path === undefined || found.has(path)) continue;
    found.add(path);
    const whole = join(repository, path);
    if (extname(path) === '.md') collect(path, found);
    if (!statSync(whole).isDirectory()) continue;
    for (const file of filesOf(whole)) found.add(posix.join(path, file));
    if (existsSync(join(whole, 'README.md'))) collect(join(path, 'README.md'), found);
  }
}

/** The place in the site of what a page in `folder` of the repository links to; undefined if it is a page of docs/. */
export function siteLink(folder: string, target: string): string | undefined {
  const path = pathOf(folder, target);
  return path === undefined ? undefined : `/source/${urlPath(path)}`;
}

/** The path in the repository of what a page in `folder` links to; undefined for pages of docs/, and for what does not exist. */
function pathOf(folder: string, target: string): string | undefined {
  const path = posix.join(folder, target).replace(/\/$/, '');
  const isPage = path.startsWith('docs/') && extname(path) === '.md';
  return isPage || !existsSync(join(repository, path)) ? undefined : path;
}

/** Programs of a site know files by their extension, so the name of a page has no other one. */
function urlPath(path: string): string {
  return path.replace(/(?<=[^/])\.(?=\w+$)/, '-');
}

function filesOf(folder: string): readonly string[] {
  return readdirSync(folder).filter((file) => extname(file) === '.ts');
}

function contentOf(path: string): string {
  const whole = join(repository, path);
  if (extname(path) === '.md') return moved(readFileSync(whole, 'utf8'), posix.dirname(path));
  if (!statSync(whole).isDirectory()) return `# ${basename(path)}\n\n\`${path}\`\n\n${codeOf(whole)}`;
  const readme = join(whole, 'README.md');
  const text = existsSync(readme) ? readFileSync(readme, 'utf8') : `# ${basename(path)}`;
  const files = filesOf(whole).map((file) => `- [\`${file}\`](${siteLink(path, file)})`);
  return `${moved(text, path)}\n\n## Files\n\n${files.join('\n')}\n`;
}

/** The text of a page in `folder` of the repository, with links that are right in the site. */
function moved(text: string, folder: string): string {
  return text.replace(link, (all, target: string, anchor = '') => {
    const place = siteLink(folder, target) ?? `/${relative('docs', posix.join(folder, target))}`;
    return all.replace(target + anchor, place + anchor);
  });
}

function codeOf(file: string): string {
  return `\`\`\`\`${languages[extname(file)] ?? 'text'}\n${readFileSync(file, 'utf8')}\n\`\`\`\`\n`;
}

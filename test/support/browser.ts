import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';

const load = createRequire(import.meta.url);

/** Chromium from an npm package: it needs no download besides `npm ci`, and no package of the system. */
export async function launchBrowser(): Promise<Browser> {
  const folder = await unpackedBrowser();
  return chromium.launch({
    executablePath: join(folder, 'chromium'),
    // As root, and in containers, it has no sandbox. It opens pages of the test's own gateway only.
    args: ['--headless=shell', '--no-sandbox', '--no-zygote', '--disable-gpu', '--disable-dev-shm-usage'],
    env: { ...process.env, FONTCONFIG_PATH: join(folder, 'fonts') },
  });
}

/** The package unpacks into the temporary folder, and takes half a file of another process for a whole one. So each unpacks apart. */
async function unpackedBrowser(): Promise<string> {
  const packageFile = join(dirname(load.resolve('@sparticuz/chromium')), '../package.json');
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { readonly version: string };
  const folder = join(tmpdir(), `refold-browser-${version}`);
  if (existsSync(folder)) return folder;
  const own = mkdtempSync(`${folder}-`);
  const before = process.env.TMPDIR;
  process.env.TMPDIR = own;
  try {
    const { default: packed } = await import('@sparticuz/chromium');
    await packed.executablePath();
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
  writeFileSync(join(own, 'fonts/fonts.conf'), fontsOf(folder));
  try {
    renameSync(own, folder);
  } catch (error) {
    rmSync(own, { recursive: true });
    if (!existsSync(folder)) throw error; // otherwise another process was faster
  }
  return folder;
}

/** The package's own file names `/tmp/fonts`. Chromium ends at the first text if it finds no font. */
function fontsOf(folder: string): string {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${folder}/fonts</dir><cachedir>${folder}/fonts-cache</cachedir></fontconfig>
`;
}

/** A problem that axe found, in one line. */
export interface AxeProblem {
  readonly impact: string;
  readonly rule: string;
  readonly where: string;
}

const axe = readFileSync(load.resolve('axe-core/axe.min.js'), 'utf8');

interface AxeRun {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string | null;
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
  }[];
}

/** Examines the page as it is shown. The debugger evaluates axe, so the page's own policy stays in force. */
export async function examine(page: Page): Promise<readonly AxeProblem[]> {
  const { violations } = await page.evaluate<AxeRun>(`(async () => { ${axe}; return axe.run(); })()`);
  return violations.map(({ id, impact, nodes }) => ({
    impact: impact ?? 'unknown',
    rule: id,
    where: nodes.map(({ html, failureSummary }) => `${html} ${failureSummary ?? ''}`).join('\n'),
  }));
}

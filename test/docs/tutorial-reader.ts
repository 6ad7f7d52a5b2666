import { expect } from 'vitest';
import type { Shell } from '../support/shell.ts';
import { until } from '../support/until.ts';
import { asShown } from './as-shown.ts';
import { RealNames, type ShownBlock, type TutorialBlock } from './tutorial-page.ts';

/** Executes the blocks of a tutorial one after the other, in one shell, as its reader does. */
export class TutorialReader {
  readonly #shell: Shell;
  readonly #sources: readonly string[];
  readonly #names = new RealNames();
  lastOutput = '';

  /** Code that the page shows is in one of the sources. */
  constructor(shell: Shell, sources: readonly string[]) {
    this.#shell = shell;
    this.#sources = sources;
  }

  async execute(block: TutorialBlock): Promise<void> {
    switch (block.kind) {
      case 'code':
        return expect(
          this.#sources.some((source) => trimmed(source).includes(trimmed(block.source))),
          block.source,
        ).toBe(true);
      case 'commands':
        return this.#look(block.source, () => this.#run(block));
      case 'operation':
        return this.#look(block.source, () => this.#ask(block));
    }
  }

  /** If looking changes nothing, looks again until the screen shows what the page shows. */
  async #look(source: string, asThePageShows: () => Promise<boolean>): Promise<void> {
    const changesNothing = /^(\{|refold (status|history) )/.test(source.replaceAll(/^#.*\n/gm, ''));
    if (changesNothing) await until(asThePageShows);
    else expect(await asThePageShows(), `${source}${this.lastOutput}`).toBe(true);
  }

  async #run({ source, shown = '' }: ShownBlock): Promise<boolean> {
    const { text, code } = await this.#shell.run(this.#names.inReality(onThisMachine(source)));
    const fits = () => {
      this.lastOutput = text();
      return this.#names.fits(this.lastOutput, shown);
    };
    // A process in the background prints when it has started.
    if (/& \w+=\$!\n/.test(source)) await until(fits);
    return fits() && (code !== 0) === /^refold: (?!SIG)/.test(this.lastOutput);
  }

  async #ask({ source, shown }: ShownBlock): Promise<boolean> {
    const [gateway = '127.0.0.1:4000'] = /127\.0\.0\.1:\d+/.exec(source) ?? [];
    const response = await fetch(this.#names.inReality(`http://${gateway}/graphql`), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: source }),
    });
    const answer = (await response.json()) as { readonly data?: unknown; readonly errors?: unknown }; // a GraphQL answer
    this.lastOutput = JSON.stringify(answer, null, 2);
    const whole = JSON.parse(shown ?? expect.fail(`no answer below\n${source}`));
    // The page shows the whole response if it has errors, else only the data.
    const expected = whole.errors ? whole : { data: whole };
    try {
      expect(answer).toEqual(asShown(expected));
      return true;
    } catch {
      return false;
    }
  }
}

function trimmed(code: string): string {
  return code
    .split('\n')
    .map((line) => line.trim())
    .join('\n')
    .trim();
}

/** With any free port instead of the page's. Builds that the page kills half-way must not end before that, however busy this machine is. */
function onThisMachine(commands: string): string {
  return commands.replaceAll(/\bPORT=\d+ /g, '').replaceAll('PAUSE_MS=200 ', 'PAUSE_MS=500 ');
}

/** A part of the tutorial with its blocks, in their order. */
export interface TutorialStep {
  readonly title: string;
  readonly blocks: readonly TutorialBlock[];
}

export type TutorialBlock = ShownBlock | { readonly kind: 'code'; readonly source: string };

/** Commands or an operation, and what the page shows as their output or response. */
export interface ShownBlock {
  readonly kind: 'commands' | 'operation';
  readonly source: string;
  readonly shown: string | undefined;
}

/** Reads the steps of a page: its sections with commands and their output, operations and their responses, and code. */
export function tutorialSteps(page: string): readonly TutorialStep[] {
  return page
    .split(/^## /m)
    .map((section) => ({ title: section.slice(0, section.indexOf('\n')), blocks: blocksIn(section) }))
    .filter(({ blocks }) => blocks.length > 0);
}

function blocksIn(section: string): readonly TutorialBlock[] {
  const fences =
    /```sh\n(?<commands>.*?)```(?:\n+```text\n(?<output>.*?)```)?|```graphql\n(?<operation>.*?)```(?:\n+```json\n(?<answer>.*?)```)?|```(?<other>\w*)\n(?<code>.*?)```/gs;
  return [...section.matchAll(fences)].map(({ groups = {} }) => {
    const { commands, output, operation, answer, other, code } = groups;
    if (commands !== undefined) return { kind: 'commands', source: commands, shown: output };
    if (operation !== undefined) return { kind: 'operation', source: operation, shown: answer };
    if (other === 'ts' && code !== undefined) return { kind: 'code', source: code };
    throw new Error(`A block of the kind '${other}' belongs to nothing:\n${code}`);
  });
}

/** The real names of what the page shows by the name of an example: `laptop:101` is a process, `127.0.0.1:4000` a gateway. */
export class RealNames {
  readonly #real = new Map<string, string>();

  /** A text of the page as it would be on this machine. */
  inReality(text: string): string {
    return text.replaceAll(exampleName, (name) => this.#real.get(name) ?? name);
  }

  /**
   * Whether a command printed what the page shows. `…` stands for anything, `~250` for any number above zero, and the width of columns does not
   * matter. A name that was not seen before is known from then on.
   */
  fits(printed: string, shown: string): boolean {
    const unknown: string[] = [];
    const parts = shown.trim().split(/(laptop:\d+|127\.0\.0\.1:\d+|^…$|…|~\d[\d,]*|\n|[ \t]+)/m);
    const pattern = parts.map((part, index) => {
      if (index % 2 === 0) return literally(part);
      if (part === '\n') return '[ \\t]*\\n';
      if (part.trim() === '') return '[ \\t]+';
      if (part === '…') return isWholeLine(parts, index) ? '[\\s\\S]*?' : '.*?';
      if (part.startsWith('~')) return '[1-9][\\d,]*';
      const real = this.#real.get(part);
      if (real !== undefined) return literally(real);
      if (unknown.includes(part)) return `\\${unknown.indexOf(part) + 1}`;
      unknown.push(part);
      return '([\\w.-]+:\\d+)';
    });
    const match = new RegExp(`^${pattern.join('')}$`).exec(printed.trim());
    for (const [index, name] of unknown.entries()) if (match) this.#real.set(name, String(match[index + 1]));
    return match !== null;
  }
}

const exampleName = /laptop:\d+|127\.0\.0\.1:\d+/g;

function literally(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

function isWholeLine(parts: readonly string[], index: number): boolean {
  return /(^|\n)$/.test(parts.slice(0, index).join('')) && /^(\n|$)/.test(parts.slice(index + 1).join(''));
}

import type { Logger } from 'pino';
import type { LogFormat } from '../../logger.ts';

/** What a running program says beside its log: text for a terminal, else lines of the log. */
export interface Output {
  /** The message of a program that has just started: a title, and a line for each address. */
  announce(text: string): void;
  say(line: string): void;
  /** Says that a signal stops the program. */
  stopping(signal: string): void;
  sayError(message: string): void;
}

export function createOutput(logger: Logger, format: LogFormat): Output {
  if (format === 'text')
    return {
      announce: (text) => void process.stdout.write(`${text}\n`),
      say: (line) => void process.stdout.write(`refold: ${line}\n`),
      // The terminal has shown the keys of Ctrl-C in this line.
      stopping: (signal) => void process.stdout.write(`\nrefold: ${stopText(signal)}\n`),
      sayError: (message) => void process.stderr.write(`refold: ${message}\n`),
    };
  // Whatever the level: it is what the program was asked to print.
  const lines = logger.child({}, { level: 'info' });
  return {
    announce(text) {
      const { title, addresses } = partsOf(text);
      const fields = Object.fromEntries(addresses.map(([name, address]) => [memberName(name), address]));
      lines.info(fields, [title, addresses.map((one) => one.join(' ')).join(', ')].join(' ').trim());
    },
    say: (line) => lines.info(line),
    stopping: (signal) => lines.info(stopText(signal)),
    sayError: (message) => lines.error(message),
  };
}

const stopText = (signal: string) => `${signal}, stopping. A second signal ends it at once.`;

/** The lines of an announcement that have a name and an address: `  GraphQL       http://127.0.0.1:4000/graphql`. */
function partsOf(text: string): { readonly title: string; readonly addresses: readonly [string, string][] } {
  const [title = '', ...rest] = text.split('\n');
  const addresses = rest.flatMap((line): [string, string][] => {
    const [, name, address] = /^ {2}(\S+(?: \S+)*) {2,}(\S+)/.exec(line) ?? [];
    return name === undefined || address === undefined ? [] : [[name, address]];
  });
  return { title, addresses };
}

/** `GraphQL` becomes `graphql`, `WebSocket` becomes `websocket`. */
function memberName(name: string): string {
  return name.toLowerCase().replaceAll(/\W+/g, '_');
}

import { afterPrefix, isLike, literalPattern, partPattern, withoutCase } from './text-patterns.ts';

/** How a text operator finds texts. Everything about it is here: its SQL and its GraphQL input are derived. */
export type TextSearch = RangeSearch | PatternSearch;

/** Served by the column's ordinary index: the texts from the given one to `end`, which is not included. */
interface RangeSearch {
  readonly index: 'ordered';
  readonly description: string;
  readonly end: (text: string) => string | undefined;
  readonly matches: (value: string, text: string) => boolean;
}

/** Served by the index for text search, `.index({ search: true })`: the texts that match a LIKE pattern. */
interface PatternSearch {
  readonly index: 'search';
  readonly description: string;
  readonly pattern: (text: string) => string;
  readonly ignoreCase: boolean;
  readonly matches: (value: string, text: string) => boolean;
}

/** The operators that search texts, in the order in which GraphQL offers them. */
export const textOperators = {
  startsWith: {
    index: 'ordered',
    description: 'Starts with this text. Case-sensitive.',
    end: afterPrefix,
    matches: (value, text) => value.startsWith(text),
  },
  endsWith: {
    index: 'search',
    description: 'Ends with this text. Case-sensitive.',
    pattern: (text) => `%${literalPattern(text)}`,
    ignoreCase: false,
    matches: (value, text) => value.endsWith(text),
  },
  contains: {
    index: 'search',
    description: 'Contains this text. Case-sensitive.',
    pattern: partPattern,
    ignoreCase: false,
    matches: (value, text) => value.includes(text),
  },
  ilike: {
    index: 'search',
    description:
      "Matches this pattern. Case-insensitive. '%' matches any characters, '_' matches one character. A backslash before them makes them ordinary characters.",
    pattern: (text) => text,
    ignoreCase: true,
    matches: (value, text) => isLike(withoutCase(value), withoutCase(text)),
  },
} as const satisfies Readonly<Record<string, TextSearch>>;

export type TextOperator = keyof typeof textOperators;

/** A condition on a text. Null matches nothing. */
export interface TextFilter {
  readonly kind: TextOperator;
  readonly column: string;
  readonly value: string;
}

export function isTextOperator(name: string): name is TextOperator {
  return Object.hasOwn(textOperators, name);
}

export function textSearch(operator: TextOperator): TextSearch {
  return textOperators[operator];
}

/** The operators that an index serves. */
export function textOperatorsBy(index: TextSearch['index']): readonly TextOperator[] {
  const names = Object.keys(textOperators).filter(isTextOperator);
  return names.filter((name) => textOperators[name].index === index);
}

import {
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  Lexer,
  type OperationDefinitionNode,
  type ParseOptions,
  parse,
  type SelectionNode,
  type SelectionSetNode,
  Source,
  TokenKind,
  type ValidationContext,
  type ValidationRule,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Config } from '../../config/define-config.ts';

// Directives are cheap, but each is checked. The limit is enough to skip or include every field of a large form.
const maxDirectives = 50;

type Limits = Pick<Config['gateway'], 'maxDepth' | 'maxAliases' | 'maxTokens'>;

/** Refuses documents that are too deep, too long or too repetitive with `QUERY_TOO_COMPLEX`, before anything is executed. */
export function limitPlugins({ maxDepth, maxAliases, maxTokens }: Limits): readonly Plugin[] {
  const rule = limitRule({ depth: maxDepth, aliases: maxAliases, directives: maxDirectives });
  return [
    { onParse: ({ setParseFn }) => setParseFn(parserOf(maxTokens)) },
    { onValidate: ({ addValidationRule }) => addValidationRule(rule) },
  ];
}

function parserOf(maxTokens: number) {
  return (text: string | Source, options?: ParseOptions) => {
    try {
      return parse(text, { ...options, maxTokens });
    } catch (error) {
      throw hasMoreTokens(text, maxTokens) ? tooComplex(`Token limit of ${maxTokens} exceeded.`) : error;
    }
  };
}

/** The parser reports too many tokens as an ordinary syntax error, recognizable only by its message; so count again. */
function hasMoreTokens(text: string | Source, max: number): boolean {
  const lexer = new Lexer(typeof text === 'string' ? new Source(text) : text);
  try {
    for (let count = 0; lexer.advance().kind !== TokenKind.EOF; ) if (++count > max) return true;
  } catch {
    // An invalid character.
  }
  return false;
}

/** The measured size of an operation. A fragment counts everywhere it is spread. */
interface Size {
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
}

function limitRule(max: Size): ValidationRule {
  return (context) => ({
    OperationDefinition(operation) {
      const { depth, aliases, directives } = createMeasure(context)(operation);
      // Reported, not thrown: it is an ordinary validation error, and cached with the document.
      const refuse = (problem: string) => context.reportError(tooComplex(problem));
      if (depth > max.depth) refuse(`Query depth limit of ${max.depth} exceeded, found ${depth}.`);
      if (aliases > max.aliases) refuse(`Aliases limit of ${max.aliases} exceeded, found ${aliases}.`);
      if (directives > max.directives) refuse(`Directives limit of ${max.directives} exceeded, found ${directives}.`);
    },
  });
}

const nothing: Size = { depth: 0, aliases: 0, directives: 0 };

function createMeasure(context: ValidationContext) {
  const fragments = new Map<string, Size>();

  function fragmentSize(name: string): Size {
    const known = fragments.get(name);
    if (known) return known;
    fragments.set(name, nothing); // another rule refuses a fragment that spreads itself
    const fragment = context.getFragment(name);
    const size = fragment ? sizeOf(fragment) : nothing;
    fragments.set(name, size);
    return size;
  }

  function selectionSize(selection: SelectionNode): Size {
    if (selection.kind !== Kind.FIELD) return sizeOf(selection);
    const { depth, aliases, directives } = sizeOf(selection);
    const { name, alias } = selection;
    // Tools alias `__typename` everywhere, and introspection queries are deep.
    const isAliased = alias !== undefined && alias.value !== '__typename' && name.value !== '__typename';
    return { depth: name.value === '__schema' ? 0 : depth + 1, aliases: aliases + (isAliased ? 1 : 0), directives };
  }

  function sizeOf(node: SelectionNode | OperationDefinitionNode | FragmentDefinitionNode): Size {
    const own = { ...nothing, directives: node.directives?.length ?? 0 };
    if (node.kind === Kind.FRAGMENT_SPREAD) return sum(own, fragmentSize(node.name.value));
    return selectionsOf(node.selectionSet).map(selectionSize).reduce(sum, own);
  }

  return sizeOf;
}

const selectionsOf = (set: SelectionSetNode | undefined) => set?.selections ?? [];

function sum(a: Size, b: Size): Size {
  return {
    depth: Math.max(a.depth, b.depth),
    aliases: a.aliases + b.aliases,
    directives: a.directives + b.directives,
  };
}

function tooComplex(problem: string): GraphQLError {
  return new GraphQLError(problem, { extensions: { code: 'QUERY_TOO_COMPLEX' } });
}

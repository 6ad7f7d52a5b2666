import { maxAliasesPlugin } from '@escape.tech/graphql-armor-max-aliases';
import { maxDepthPlugin } from '@escape.tech/graphql-armor-max-depth';
import { maxDirectivesPlugin } from '@escape.tech/graphql-armor-max-directives';
import { maxTokensPlugin } from '@escape.tech/graphql-armor-max-tokens';
import { GraphQLError, type ValidationContext } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Config } from '../config/define-config.ts';

// Directives do little, but each is looked at: enough for every field of a large form to be skipped or included.
const maxDirectives = 50;

type Limits = Pick<Config['gateway'], 'maxDepth' | 'maxAliases' | 'maxTokens'>;

/** Refuses documents that are too deep, too long or too repetitive, before anything is executed: `QUERY_TOO_COMPLEX`. */
export function limitPlugins({ maxDepth, maxAliases, maxTokens }: Limits): readonly Plugin[] {
  // Reported, not thrown: so it is a validation error like others, and remembered with the document.
  const refuse = { onReject: [report], propagateOnRejection: false };
  return [
    maxTokensPlugin({ n: maxTokens, onReject: [mark] }),
    maxDepthPlugin({ n: maxDepth, flattenFragments: true, ignoreIntrospection: true, ...refuse }),
    maxAliasesPlugin({ n: maxAliases, ...refuse }),
    maxDirectivesPlugin({ n: maxDirectives, ...refuse }),
  ];
}

function mark(_: ValidationContext | null, error: GraphQLError): void {
  error.extensions.code = 'QUERY_TOO_COMPLEX';
}

function report(context: ValidationContext | null, { message }: GraphQLError): void {
  const problem = message.replace(/^Syntax Error: /, '');
  context?.reportError(new GraphQLError(problem, { extensions: { code: 'QUERY_TOO_COMPLEX' } }));
}

import { GraphQLError, NoSchemaIntrospectionCustomRule } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { withoutHint } from '../requests/mask-errors.ts';
import { restatedError } from '../requests/restated-error.ts';

/** Hides the schema: refuses introspection, and removes suggested names from validation errors. */
export function useNoIntrospection(): Plugin {
  return {
    onValidate({ addValidationRule }) {
      addValidationRule(NoSchemaIntrospectionCustomRule);
      return ({ valid, result, setResult }) => {
        if (!valid) setResult([...result].map(unhinted));
      };
    },
  };
}

function unhinted(error: Error): Error {
  if (!(error instanceof GraphQLError)) return error;
  const message = withoutHint(error.message);
  if (message === error.message) return error;
  return restatedError(error, message, error.extensions);
}

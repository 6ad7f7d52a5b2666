import { GraphQLError, NoSchemaIntrospectionCustomRule } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { restatedError } from './restated-error.ts';

/** Keeps the schema to itself: no introspection, and no names in the hints of validation errors. */
export function useNoIntrospection(): Plugin {
  return {
    onValidate({ addValidationRule }) {
      addValidationRule(NoSchemaIntrospectionCustomRule);
      return ({ valid, result, setResult }) => {
        if (!valid) setResult([...result].map(withoutHint));
      };
    },
  };
}

function withoutHint(error: Error): Error {
  if (!(error instanceof GraphQLError)) return error;
  const message = error.message.replace(/ Did you mean .*$/s, '');
  if (message === error.message) return error;
  return restatedError(error, message, error.extensions);
}

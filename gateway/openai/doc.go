// Package openai serves contexts to clients of OpenAI's API.
package openai
